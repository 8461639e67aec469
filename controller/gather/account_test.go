package gather

import (
	"strings"
	"testing"
	"unicode"

	"wmco/render"
)

// TestAccountsOfInstances: a name that no Windows account has, or that shows as another one, is no entry.
func TestAccountsOfInstances(t *testing.T) {
	long := strings.Repeat("a", 20)
	for name, want := range map[string]string{
		"Administrator": "", "jane doe": "", "core.user-1$": "", "Jürgen W.": "", "管理者": "", "a-o": "", "a%b&c'd`e": "", long: "",
		`EXAMPLE\wmco`: "", `corp.example\jane doe`: "", `.\Administrator`: "", `EXAMPLE\` + long: "", `EXAMPLE\-o`: "",
		"wmco@corp.example": "", "first.last-x@corp.example": "", strings.Repeat("a", 64) + "@corp.example": "",

		strings.Repeat("a", 5000): "256 characters", long + "b": "20 characters", `EXAMPLE\` + long + "b": "20 characters",
		strings.Repeat("a", 250) + "@corp.example": "256 characters", strings.Repeat("d", 257) + `\a`: "256 characters",

		"admin\u202enimda": "U+202E", "admin\u200b": "U+200B", "admin\ufeff": "U+FEFF", "ad\u00admin": "U+00AD", "jane\u00a0doe": "U+00A0",
		"jane\u2028doe": "U+2028", "jane\u2066doe": "U+2066", "jane\ue000": "U+E000", "admin\U000e0041": "U+E0041", "a\x7fb": "U+007F",

		"-o": "begins with -", "-oProxyCommand=calc": "begins with -", "--": "begins with -", "-o@corp.example": "begins with -", `-EXAMPLE\a`: "begins with -",
		"...": "dots", ". .": "dots", "..@corp.example": "dots",

		`a\b\c`: `'\\'`, "a/b": "'/'", "a;b": "';'", "a=b": "'='", `"a"`: `'"'`, "a[b": "'['", "a]b": "']'", "a:b": "':'", "a|b": "'|'", "a,b": "','", "a+b": "'+'",
		"a*": "'*'", "a?": "'?'", "a<b": "'<'", "a>b": "'>'", "a@b@c": "'@'", `EXAMPLE\a@b`: "'@'", `EXAMPLE;\a`: "';'", "a@b/c": "'/'",

		`EXAMPLE\`: "empty", `\a`: "empty", "@corp.example": "empty", "a@": "empty",
		`EXAM PLE\a`: "blank", `EXAMPLE\ a`: "blank", `EXAMPLE \a`: "blank", `EXAMPLE\a `: "blank", "a b@corp.example": "blank", "a@corp example": "blank", "a@ corp.example": "blank",
	} {
		err := checkAccount(name)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", name, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.60q: %v, want %q", name, err, want)
		case err != nil && (len(err.Error()) > 200 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) })):
			t.Errorf("%.60q: the message is %q", name, err)
		}
	}
}

// TestAnEntryWithAnImpossibleAccountIsSkipped: the account reaches nothing that logs in or prints it.
func TestAnEntryWithAnImpossibleAccountIsSkipped(t *testing.T) {
	r := gatherFrom(t, Options{}, object("", "ConfigMap", OperatorNamespace, render.InstancesConfigMap,
		`{"data":{"10.0.0.1":"username=-oProxyCommand","10.0.0.2":"username=a\u202eb","10.0.0.3":"username=u"}}`))
	if len(r.Instances) != 3 {
		t.Fatalf("%+v", r.Instances)
	}
	for _, i := range r.Instances {
		right := i.Address == "10.0.0.3"
		if (i.Username == "u") != right || (i.Username == "") == right || i.Skipped == right {
			t.Errorf("%+v", i)
		}
	}
}
