//go:build !linux

package controlplane

import "errors"

// newLifeline does nothing: after an interrupt, the programs must be killed by hand.
func newLifeline(string) (*lifeline, error) { return nil, nil }

// kill does nothing: the program is asked to stop, which takes as long as its clients stay.
func kill(string) error { return nil }

// Save keeps nothing: each control plane begins anew.
func (c *ControlPlane) Save(string) error { return errors.ErrUnsupported }
