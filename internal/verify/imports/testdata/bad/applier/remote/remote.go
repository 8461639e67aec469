// Package remote links an SSH library.
package remote

import _ "golang.org/x/crypto/ssh"
