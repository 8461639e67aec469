// Package applier imports what its row lacks.
package applier

import _ "wmco/render/mirrors"
