// Package tiny is a module for the tests of internal/verify/mutations.
package tiny

import "errors"

// Purse holds coins.
type Purse struct{ Coins int }

// Take takes coins out of the purse. It leaves the purse alone if there are not as many.
func (p *Purse) Take(n int) error {
	if n < 0 {
		return errors.New("a negative number of coins")
	}
	if n > p.Coins {
		return errors.New("too few coins")
	}
	p.Coins -= n
	return nil
}
