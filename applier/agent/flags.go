package agent

import (
	"time"

	"github.com/spf13/pflag"

	"wmco/applier/protocol"
	"wmco/bundle"
)

// Flags are those of `wmco-node run`.
type Flags struct {
	// Service is true if it runs as the Windows service.
	Service    bool
	ReportOnly bool
	Kubeconfig string
	// CloudCertificate is for Azure.
	CloudCertificate string
	LogDir           string
	Interval         time.Duration
	Full             time.Duration
}

// AddToFlags adds them to a command.
func (f *Flags) AddToFlags(flags *pflag.FlagSet) {
	// A flag and not svc.IsWindowsService, which inspects the session and the parent: that is not reliable everywhere.
	flags.BoolVar(&f.Service, "service", false, "run as the Windows service "+bundle.AgentService)
	flags.BoolVar(&f.ReportOnly, "report-only", false, "report what differs and repair nothing")
	flags.StringVar(&f.Kubeconfig, "kubeconfig", "",
		"kubeconfig with which this node pulls its bundles (empty: it pulls none)")
	flags.StringVar(&f.CloudCertificate, "cloud-certificate", "",
		"file to keep the client certificate and the key of cloud-node-manager in (default: it gets none)")
	flags.StringVar(&f.LogDir, "log-dir", "", "folder for logs (default stderr)")
	flags.DurationVar(&f.Interval, "interval", protocol.ComparisonInterval, "time between two comparisons")
	flags.DurationVar(&f.Full, "full-interval", 6*time.Hour, "time between two comparisons that read every file")
}

// ParsedOptions are those that the flags set.
func (f Flags) ParsedOptions() Options {
	o := Options{ReportOnly: f.ReportOnly, Interval: f.Interval, Full: f.Full, CloudCertificate: f.CloudCertificate, LogDir: f.LogDir}
	if bundle.CheckPath(f.LogDir) == nil { // logs may be anywhere; the copy of the ledger is only where a bundle has them
		o.LedgerCopy = f.LogDir + `\` + bundle.LedgerCopy
	}
	return o
}
