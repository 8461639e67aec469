package consumers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// checkPlaces reads the table of the image gateway as that does (gateway/places), and the names in it as registries and containerd do.
func checkPlaces(_ context.Context, contents []byte, _ Options) error {
	var table struct {
		Schema     int      `json:"schema"`
		Routed     []string `json:"routed"`
		Registries []struct {
			Scope   string `json:"scope"`
			Mirrors []struct {
				Location string `json:"location"`
				Use      string `json:"use"`
				Insecure bool   `json:"insecure"`
			} `json:"mirrors"`
			Blocked, Insecure bool
			Objects           []string `json:"objects"`
		} `json:"registries"`
		Allowed, Denied []string
		Settings        string
		Policies        []struct {
			Scope        string
			Objects      []string
			Requirements []json.RawMessage
		}
		Credentials []struct{ Key, Auth string }
	}
	in := json.NewDecoder(bytes.NewReader(contents))
	in.DisallowUnknownFields()
	if err := in.Decode(&table); err != nil {
		return err
	}
	var names []string
	for _, r := range table.Registries {
		names = append(names, strings.Replace(r.Scope, "*", "any", 1))
		for _, m := range r.Mirrors {
			names = append(names, m.Location)
		}
	}
	for _, p := range table.Policies {
		names = append(names, strings.Replace(p.Scope, "*", "any", 1))
		if len(p.Objects) == 0 || len(p.Requirements) == 0 {
			return fmt.Errorf("%s: a policy of no object, or without requirements", p.Scope)
		}
	}
	for _, name := range names {
		if _, err := reference.ParseNamed(name + "/image"); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, c := range table.Credentials {
		if c.Auth != masked {
			return errors.New("credentials must be masked")
		}
	}
	if len(table.Routed) == 0 {
		return errors.New("no registry goes through the gateway")
	}
	return nil
}
