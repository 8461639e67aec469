// Package controller dials hosts itself.
package controller

import _ "wmco/applier/remote/ssh"
