// Package bundle links a library of others.
package bundle

import _ "k8s.io/client-go/rest"
