// Package ssh may link an SSH library.
package ssh

import _ "golang.org/x/crypto/ssh"
