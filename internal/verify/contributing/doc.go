// Package contributing holds the test of CONTRIBUTING.md: its recipes name files that exist, and as many as they say.
package contributing
