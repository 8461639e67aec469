package render

import (
	"reflect"
	"testing"

	"wmco/bundle"
)

// eachSecret calls the function with every secret below a value.
func eachSecret(v reflect.Value, path string, do func(path string, s *bundle.Secret)) {
	if s, ok := v.Addr().Interface().(*bundle.Secret); ok {
		do(path, s)
		return
	}
	if v.Kind() == reflect.Struct {
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				eachSecret(v.Field(i), path+"."+field.Name, do)
			}
		}
	}
}

// TestWithoutCredentials: nothing is left of any secret of a cluster, and where there was none, there is none that nodes get.
func TestWithoutCredentials(t *testing.T) {
	const password = "hunter7"
	var c Cluster
	n := 0
	eachSecret(reflect.ValueOf(&c).Elem(), "Cluster", func(_ string, s *bundle.Secret) {
		n++
		*s = bundle.NewSecret("http://user:" + password + "@example.com")
	})
	if n < 5 {
		t.Fatalf("only %d secrets were found", n)
	}
	bare := c.WithoutCredentials()
	eachSecret(reflect.ValueOf(&c).Elem(), "Cluster", func(_ string, s *bundle.Secret) { *s = bundle.NewSecret(password) })
	other := c.WithoutCredentials()
	all := map[string]string{}
	eachSecret(reflect.ValueOf(&bare).Elem(), "Cluster", func(path string, s *bundle.Secret) { all[path] = s.Reveal() })
	eachSecret(reflect.ValueOf(&other).Elem(), "Cluster", func(path string, s *bundle.Secret) {
		if s.Reveal() != all[path] {
			t.Errorf("%s depends on the secret", path)
		}
	})
	if none := (Cluster{}).WithoutCredentials(); !none.Proxy.IsZero() || !none.Bootstrap.Token.IsZero() {
		t.Error("a cluster without a proxy or a token has one")
	}
}
