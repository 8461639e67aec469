package nodecli

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/http/httpproxy"

	"wmco/applier"
	"wmco/applier/agent/executables"
	"wmco/applier/protocol"
	"wmco/bundle"
	"wmco/bundle/archive"
	"wmco/gateway/registry"
	"wmco/internal/cli"
	"wmco/payload/fetch"
	"wmco/payload/sources"
)

func fetchCommand(p Program) *cobra.Command {
	var text bool
	var wait time.Duration
	var format cli.Format
	cmd := &cobra.Command{
		Use:   "fetch",
		Short: "Fetch the executables that the order on stdin lists, and keep them for later",
		Long: `Fetch the executables of the operator's image that this host lacks, from the places of the order on stdin, with its credentials,
proxy and CAs. They are kept as stage keeps them. Nothing that runs on this host is changed. Events are printed, one per line.` +
			cli.ExitHelp(
				"0    this host has the executables", "2    usage, or stdin cannot be read",
				"4    no place has an executable, locked by another run, or a fault of this host", "130  interrupted",
			),
		Args: cli.Usage{}.Check,
		RunE: func(cmd *cobra.Command, _ []string) error {
			e, err := p.engine("fetch")
			if err != nil {
				return err
			}
			order, err := p.orderIn(cmd.Context(), text)
			if err != nil {
				return cli.UsageError("%w", err)
			}
			defer cli.Orderly(cmd.Context())()
			f := fetching{engine: e, order: order, emit: p.emitter(format), now: p.Clock.Now, wait: wait, registry: p.registryOf(order)}
			return f.fetchAll(cmd.Context())
		},
	}
	textFlag(cmd, &text)
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "how long to wait for another run on this host")
	cli.AddFormat(cmd, &format, cli.JSON, cli.Text)
	return cmd
}

// orderIn reads the order on stdin.
func (p Program) orderIn(ctx context.Context, text bool) (sources.Order, error) { //nolint:revive // the value of a flag
	var in io.Reader = newPatient(ctx, p.Stdin, stdinSilence)
	if text {
		in = base64.NewDecoder(base64.StdEncoding, in)
	}
	return sources.DecodeOrder(in)
}

// registryOf returns what fetches by an order. Its CAs are trusted beside those of the system: on Windows a pool of the
// system asks Windows first, and then what was added to it (crypto/x509, SystemCertPool).
func (p Program) registryOf(o sources.Order) *fetch.Single {
	if p.Registries != nil {
		return &fetch.Single{Client: &registry.Client{Now: p.Clock.Now, Verified: p.Registries, Insecure: p.Registries}}
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	roots.AppendCertsFromPEM([]byte(o.TrustedCAs))
	proxy := httpproxy.Config{HTTPProxy: o.Proxy.HTTP.Reveal(), HTTPSProxy: o.Proxy.HTTPS.Reveal(), NoProxy: o.Proxy.NoProxy}
	verified, insecure := registry.Options{Roots: roots, Proxy: proxy}.Transports()
	return &fetch.Single{Client: &registry.Client{Now: p.Clock.Now, Verified: verified, Insecure: insecure}}
}

// fetching is one run of the command.
type fetching struct {
	engine   *applier.Engine
	order    sources.Order
	registry executables.Registry
	emit     func(protocol.Event)
	now      func() time.Time
	wait     time.Duration
}

// eventStep is how many bytes are between two events.
const eventStep = 1 << 20

// fetchAll fetches what the host lacks. It tries again as long as that brings more.
func (f fetching) fetchAll(ctx context.Context) error {
	var have, told int64
	missing := executables.Missing{Registry: f.registry, Stage: f.stageExecutables, Log: slog.New(slog.DiscardHandler), Note: func(b executables.Bytes) {
		have = max(have, b.Present)
		if have >= told+eventStep || b.Kept || told == 0 {
			told = have
			f.emit(protocol.Event{Schema: protocol.Schema, Time: f.now().UTC(), Event: protocol.EventFetching, Bytes: have, AllBytes: b.Wanted})
		}
	}}
	for {
		before := have
		_, err := missing.FetchMissing(ctx, f.order.List)
		if err == nil || have <= before || ctx.Err() != nil {
			return f.reportEnd(ctx, err)
		}
	}
}

// reportEnd reports how it ended.
func (f fetching) reportEnd(ctx context.Context, err error) error {
	e := protocol.Event{Schema: protocol.Schema, Time: f.now().UTC(), Event: protocol.EventResult, Result: protocol.ResultApplied}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		e.Result, e.Message = protocol.ResultPartial, bundle.MaskText(err.Error())
		err = &cli.ExitError{Status: cli.ExitPartial, Err: err}
	}
	f.emit(e)
	return err
}

// stageExecutables keeps executables, and returns which the host lacks.
func (f fetching) stageExecutables(ctx context.Context, all []archive.Content, from archive.Source) ([]bundle.Digest, error) {
	lacks := func(d bundle.Digest) bool { return slices.Contains(f.order.Lacking, d) }
	return f.engine.StageExecutables(ctx, all, lacks, from, f.wait)
}
