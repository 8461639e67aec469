package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"wmco/bundle"
	"wmco/internal/cli"
	"wmco/render/machines"
)

// userDataAnswer is the answer of `wmco userdata -o json`.
type userDataAnswer struct {
	UserData string `json:"userData"`
}

// userDataFlags are those of `wmco userdata`.
type userDataFlags struct {
	platform  platformFlag
	publicKey string
	secret    bool
	script    bool
	format    cli.Format
}

// maxPublicKey is larger than any public key, in bytes.
const maxPublicKey = 1 << 20

func userDataCommand(a app) *cobra.Command {
	f := userDataFlags{platform: platformFlag{among: bundle.Platforms()}}
	cmd := &cobra.Command{
		Use:   "userdata --platform PLATFORM --public-key FILE|- [--script|--secret]",
		Short: "Write the user data that lets the operator reach new Windows Machines",
		Long: `Write the PowerShell script that a new Windows Machine runs: it starts the OpenSSH server, opens the ports that the operator and
the cluster need, and accepts only logins with the key. The operator keeps it in the Secret
openshift-machine-api/windows-user-data; --secret writes that Secret.

It has the tags that the agents of clouds need. --script omits them, for a machine that becomes an image. --platform none is for an
existing host that joins by its entry in ConfigMap windows-instances: keys and passwords of other administrators stay. Run either in
Windows PowerShell as Administrator.

If Windows lacks the OpenSSH server, the script installs it from Windows Update: ten attempts, half a minute apart. The log of the
cloud's agent on the host has each failure.

The same platform and key give the same text, whatever the key's comment.` +
			cli.ExitHelp("0  done", "2  invalid usage, or not a public key"),
		Example: `  ssh-keygen -y -f private-key.pem | wmco userdata --platform aws --public-key -
  wmco userdata --platform vsphere --public-key id_ed25519.pub --secret | oc apply -f -
  wmco userdata --platform none --public-key id_ed25519.pub > prepare.ps1`,
		RunE: func(*cobra.Command, []string) error { return f.run(a) },
	}
	addPlatform(cmd, &f.platform, "where the Machines run")
	cmd.Flags().StringVar(&f.publicKey, "public-key", "", "file with the SSH public key of the operator's private key (- for stdin)")
	cmd.Flags().BoolVar(&f.secret, "secret", false, "write the Secret windows-user-data with the user data in it")
	cmd.Flags().BoolVar(&f.script, "script", false, "write the PowerShell without the tags of clouds, to be run by hand")
	cmd.MarkFlagsMutuallyExclusive("script", "secret")
	cli.AddFormat(cmd, &f.format, cli.Text, cli.JSON)
	cli.Expect(cmd, cli.Usage{Needs: []cli.Need{
		{Flags: []string{"platform"}, Text: "say where the Machines run with --platform " + strings.Join(f.platform.names(), "|")},
		{Flags: []string{"public-key"}, Text: "give the operator's public key with --public-key FILE, or - for stdin"},
	}})
	return cmd
}

func (f *userDataFlags) run(a app) error {
	key, err := readPublicKey(a, f.publicKey)
	if err != nil {
		return err
	}
	if f.secret && f.platform.value == bundle.PlatformNone {
		return cli.UsageError("--secret: Machines read the Secret, and platform none has none: leave --secret out, and run the script on each host")
	}
	write := machines.UserData
	if f.script || f.platform.value == bundle.PlatformNone {
		write = machines.Script
	}
	text, err := write(f.platform.value, key)
	if err != nil {
		return cli.UsageError("%s: %w", f.publicKey, err)
	}
	switch {
	case f.secret && f.format == cli.JSON:
		return cli.WriteJSON(a.stdout, machines.Secret(text).Object)
	case f.secret:
		return writeManifest(a, machines.Secret(text))
	case f.format == cli.JSON:
		return cli.WriteJSON(a.stdout, userDataAnswer{UserData: text})
	}
	_, err = io.WriteString(a.stdout, text)
	return err
}

func readPublicKey(a app, name string) (string, error) {
	in := a.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", cli.UsageError("reading the public key: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read from
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxPublicKey))
	if err != nil {
		return "", fmt.Errorf("reading the public key: %w", err)
	}
	return string(text), nil
}
