package tiny

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestTooManyCoins(t *testing.T) {
	p := Purse{Coins: 2}
	if err := p.Take(3); err == nil || p.Coins != 2 {
		t.Errorf("%v, %d coins", err, p.Coins)
	}
}

func TestCases(t *testing.T) {
	for name, n := range map[string]int{"none": 0, "one": 1} {
		t.Run(name, func(t *testing.T) {
			p := Purse{Coins: 5}
			if err := p.Take(n); err != nil || p.Coins != 5-n {
				t.Errorf("%v, %d coins", err, p.Coins)
			}
		})
	}
}

func TestTheRules(t *testing.T) {
	text, err := os.ReadFile("rules.txt")
	if err != nil || strings.TrimSpace(string(text)) != "take no more than there is" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestSkipped(t *testing.T) { t.Skip("no purse here") }

func TestBroken(t *testing.T) { t.Error("always") }

// TestSlow is for interruptions. It shows that it runs by a file.
func TestSlow(t *testing.T) {
	p := Purse{Coins: 2}
	if p.Take(-1) == nil {
		if err := os.WriteFile(os.Getenv("TINY_STARTED"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
	}
}
