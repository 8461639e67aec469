// Package render breaks the rules in every way.
package render

import (
	"crypto/rand"
	"math/rand/v2"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	clock "time"

	_ "wmco/applier"
	_ "wmco/render/mirrors"
)

var (
	_ = clock.Second
	_ = clock.Now()
	_ = clock.Since
	_ netip.Addr
	_ url.URL
	_ = net.ParseIP
	_ = os.Getenv
	_ = filepath.Join
)
