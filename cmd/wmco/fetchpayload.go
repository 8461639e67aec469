package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"wmco/bundle"
	"wmco/gateway/registry"
	"wmco/internal/cli"
	"wmco/payload/fetch"
	"wmco/render/mirrors"
)

// imagePrefix marks an image in place of a folder.
const imagePrefix = "oci:"

// fetchPayload makes the flag --payload name a folder: the executables of an image are fetched from its registry.
func fetchPayload(cmd *cobra.Command, a app) error {
	flag := cmd.Flags().Lookup("payload")
	if flag == nil {
		return nil
	}
	text, isImage := strings.CutPrefix(flag.Value.String(), imagePrefix)
	if !isImage {
		return nil
	}
	name, err := fetch.ParseImage(text)
	if err != nil {
		return cli.UsageError("--payload: %v", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	verified, insecure := registry.Options{Proxy: *httpproxy.FromEnvironment()}.Transports()
	shown := time.Time{}
	folder, err := fetch.Source{
		Image: name, Auth: loginOf(name.Name()), Cache: filepath.Join(cache, "wmco", "payload"),
		Client: &registry.Client{Verified: verified, Insecure: insecure, Now: a.now},
		Progress: func(have, all int64) {
			if now := a.now(); have == all || now.Sub(shown) >= progressEvery {
				shown = now
				cli.Printf(a.stderr, "fetching executables: %d of %d MB\n", have/1e6, all/1e6)
			}
		},
	}.FetchExecutables(cmd.Context())
	answered := (*fetch.StatusError)(nil)
	if failed := (net.Error)(nil); errors.As(err, &failed) || errors.As(err, &answered) && answered.Status >= http.StatusInternalServerError {
		return &cli.ExitError{Status: cli.ExitUnreachable, Err: err}
	}
	if answered != nil && answered.IsDenied() {
		return fmt.Errorf("%w; fix: log in with podman login %s, or set REGISTRY_AUTH_FILE", err, answered.Registry)
	}
	if err != nil {
		return err
	}
	return flag.Value.Set(folder)
}

// progressEvery is how often a line is printed.
const progressEvery = 5 * time.Second

// loginOf returns the credentials for an image, of the first file that podman or docker would read that has some (containers-auth.json(5)).
func loginOf(name string) bundle.Secret {
	home, _ := os.UserHomeDir() // without one, its files are not there
	files := []string{
		os.Getenv("REGISTRY_AUTH_FILE"),
		filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "containers", "auth.json"),
		filepath.Join(cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config")), "containers", "auth.json"),
		filepath.Join(cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker")), "config.json"),
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if found := mirrors.CredentialsFor(bundle.NewSecret(string(data)), name); !found.IsZero() {
			return found
		}
	}
	return bundle.Secret{}
}
