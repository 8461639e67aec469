// Package contributing checks what documents and comments say about the tree: recipes, controllers, tests, names of packages.
package contributing
