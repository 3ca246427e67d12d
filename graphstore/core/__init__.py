"""What a store is made of; private. Nothing outside core and store imports from here what is not a value or a view."""
