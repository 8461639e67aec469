// Package records knows the engine.
package records

import _ "wmco/applier"
