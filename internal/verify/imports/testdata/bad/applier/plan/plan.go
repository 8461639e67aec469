// Package plan is not pure.
package plan

import (
	_ "context"
	_ "io"
	_ "io/fs"

	_ "wmco/applier"
)
