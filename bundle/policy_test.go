package bundle

import "testing"

// TestWhatIsNoPolicy: the registry takes a number under a name below the key of policies, and nothing else.
func TestWhatIsNoPolicy(t *testing.T) {
	good := Policy{Name: PolicyUpdates, Value: UpdatesNotInstalled, Impact: ImpactNone}
	if err := checkPolicy(good); err != nil {
		t.Fatal(err)
	}
	if key, value := PolicyPlace(good.Name); key != `SOFTWARE\Policies\Microsoft\Windows\WindowsUpdate\AU` || value != "AUOptions" {
		t.Errorf("%s %s", key, value)
	}
	for what, p := range map[string]Policy{
		"no name":            {Value: "3"},
		"no key":             {Name: "AUOptions", Value: "3"},
		"no value":           {Name: `WindowsUpdate\`, Value: "3"},
		"an empty key":       {Name: `WindowsUpdate\\AUOptions`, Value: "3"},
		"a key from the top": {Name: `\WindowsUpdate\AUOptions`, Value: "3"},
		"a NUL":              {Name: "WindowsUpdate\\A\x00", Value: "3"},
		"no number":          {Name: PolicyUpdates, Value: "on"},
		"a negative number":  {Name: PolicyUpdates, Value: "-1"},
		"too large":          {Name: PolicyUpdates, Value: "4294967296"},
		"another form":       {Name: PolicyUpdates, Value: "03"},
	} {
		if err := checkPolicy(p); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
}
