// Package mirrors links the cluster.
package mirrors

import _ "k8s.io/client-go/rest"
