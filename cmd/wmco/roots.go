package main

import (
	_ "time/tzdata" // so that a time zone in TZ works in an image without a system

	// Mozilla's roots, of a pinned version: they count only where the system has none, as in our image. A kubeconfig
	// may name an API server with a public certificate.
	_ "golang.org/x/crypto/x509roots/fallback"
)
