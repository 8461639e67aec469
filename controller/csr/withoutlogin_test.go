package csr

import "testing"

func TestNamesOfANode(t *testing.T) {
	for name, want := range map[string]bool{
		"win-a": true, "win-a.example.com.": true, "WIN-A.example.com": true, "win-b.example.com": false, "win-a1.example.com": false, "192.0.2.1": false, "": false,
	} {
		if got := isNameOfNode(name, "win-a"); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
	if isNameOfNode("192.0.2.1", "192") {
		t.Error("an address is taken for a name")
	}
}
