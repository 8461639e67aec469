package nodecli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"wmco/bundle"
	"wmco/gateway"
	"wmco/gateway/places"
	"wmco/gateway/registry"
	"wmco/gateway/signatures"
	"wmco/internal/cli"
	"wmco/layout"
	"wmco/payload"
)

// registryFlags are the flags of the gateway.
type registryFlags struct {
	places, state, listen, logFile, verifier, metrics string
	service                                           bool
}

func registryCommand(p Program) *cobra.Command {
	var f registryFlags
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Serve containerd the images whose mirrors its hosts files cannot express",
		Long: `Listen on a loopback address, and ask the mirrors and registries of the bundle for the images that containerd pulls. Nothing can be
pushed. The certificates with which containerd is known are made in the folder of its state, and made again before they end. There it also lists registries whose images have come from no
place for ten minutes.

Images that need signatures are verified by image-verifier, a program of its own; without it they are refused.

The places of images are read again when their file changes. The proxy is that of HTTP_PROXY, HTTPS_PROXY and NO_PROXY.` +
			cli.ExitHelp("0    asked to stop", "2    usage", "130  interrupted"),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !f.service {
				return p.serveRegistry(cmd.Context(), f)
			}
			return p.AsService(cmd.Context(), layout.Gateway, func(ctx context.Context) error { return p.serveRegistry(ctx, f) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.places, "places", places.File, "file with the places of images")
	flags.StringVar(&f.state, "state", places.State, "folder for certificates and the list of registries that cannot be pulled from")
	flags.StringVar(&f.listen, "listen", "127.0.0.1:22629", "loopback address and port")
	flags.StringVar(&f.logFile, "log-file", "", "append the log to this file (default stderr)")
	flags.StringVar(&f.metrics, "metrics", places.Metrics, "folder for numbers that windows_exporter reads; empty for none")
	flags.StringVar(&f.verifier, "verifier", payload.Find(payload.Verifier).Path, "program that verifies signatures of images")
	flags.BoolVar(&f.service, "service", false, "run as a Windows service")
	return cmd
}

// serveRegistry runs the gateway until the context ends.
func (p Program) serveRegistry(ctx context.Context, f registryFlags) error {
	defer cli.Orderly(ctx)()
	out := p.Stderr
	if f.logFile != "" {
		file, err := openLog(f.logFile)
		if err != nil {
			return &cli.ExitError{Status: cli.ExitUsage, Err: err}
		}
		defer func() { _ = file.Close() }()
		out = file
	}
	log := slog.New(slog.NewTextHandler(out, nil))
	listener, err := listenLoopback(ctx, f.listen)
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	if err := os.MkdirAll(f.state, 0o700); err != nil { // on Windows with the access list of the folder above, which is for administrators
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	state := folder(f.state)
	if err := state.removeFolders(signatures.FolderPrefix); err != nil {
		log.Warn("folders of an earlier process stay", "error", err)
	}
	verified, insecure := registry.Options{Proxy: *httpproxy.FromEnvironment()}.Transports()
	client := &registry.Client{Now: p.Clock.Now, Verified: verified, Insecure: insecure}
	address := listener.Addr().String()
	listTroubles := func(list []places.Trouble) error {
		data, err := places.EncodeTroubles(list)
		if err == nil {
			err = state.WriteFile(bundle.Base(places.TroubleFile), data)
		}
		if err != nil {
			log.Error("registries that cannot be pulled from are not listed", "error", err)
		}
		return err
	}
	writeCounts, err := f.countsFile()
	if err != nil {
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	_ = listTroubles(nil) // what an earlier process listed may be over; the node agent forgets it an hour later
	log.Info("started", "version", p.Version, "address", address)
	err = gateway.Server{
		Handler: gateway.New(gateway.Options{
			Address: address, Client: client, Log: log, Now: p.Clock.Now,
			Verify:  signatures.Program{Path: f.verifier, Folder: f.state}.Ask,
			Random:  func(b []byte) { _, _ = rand.Read(b) }, // it does not fail (crypto/rand)
			Trouble: listTroubles,
			Counts:  writeCounts,
			File: gateway.File{
				Stat: func() (fs.FileInfo, error) { return os.Stat(f.places) },
				Read: func() ([]byte, error) { return os.ReadFile(f.places) },
			},
		}),
		Certificates: state, Clock: p.Clock, Log: log,
	}.Run(ctx, listener)
	if err != nil {
		log.Error("stopped", "error", err)
		return &cli.ExitError{Status: cli.ExitUsage, Err: err}
	}
	log.Info("stopped")
	return nil
}

// countsFile returns what writes the numbers of the gateway; nil without a folder for them.
func (f registryFlags) countsFile() (func([]byte) error, error) {
	if f.metrics == "" {
		return nil, nil
	}
	err := os.MkdirAll(f.metrics, 0o700) // on Windows with the access list of the folder above, as that of the state
	return func(data []byte) error { return folder(f.metrics).WriteFile(bundle.Base(places.CountsFile), data) }, err
}

// listenLoopback refuses every other address: who reaches the gateway reaches the registries with the credentials of the node.
func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("--listen %s is not a loopback address with a port", address)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}

// folder implements identity.Folder.
type folder string

// removeFolders removes the folders whose names begin with a prefix.
func (f folder) removeFolders(prefix string) error {
	list, err := filepath.Glob(filepath.Join(string(f), prefix+"*"))
	for _, path := range list {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// ReadFile reads a file.
func (f folder) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(string(f), name))
}

// WriteFile replaces a file. On Windows the new one has the access list of its folder (learn.microsoft.com/windows/win32/secauthz/ace-inheritance-rules),
// and replacing fails while containerd or the node agent reads the old one (learn.microsoft.com/windows/win32/api/fileapi/nf-fileapi-createfilew,
// FILE_SHARE_DELETE): Server tries again when it looks at the certificates next, Handler with the next pull.
func (f folder) WriteFile(name string, data []byte) error {
	path := filepath.Join(string(f), name)
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
