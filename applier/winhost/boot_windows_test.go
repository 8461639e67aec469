package winhost

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wmco/applier/plan"
	"wmco/applier/selftest"
	"wmco/bundle"
)

// bootVariable is set to the name of the host by internal/test/winetest, which boots it between the halves of TestBoot.
const bootVariable = "WMCO_TEST_BOOT"

// left is what the half before the boot leaves for the half after it.
type left struct {
	Facts    bundle.Facts
	CA, Leaf []byte
	Key      []byte
}

const (
	fileLeft    = `C:\wmco-left.json`
	bootProgram = `C:\wmco-boot.exe`
	bootService = "wmco-boot"
)

// TestBoot has two halves, with a boot of the host between them.
func TestBoot(t *testing.T) {
	name := os.Getenv(bootVariable)
	if name == "" {
		t.Skip("internal/test/winetest runs this test and boots the host between its halves")
	}
	anchorRoots(t)
	variable := plan.Setting{Kind: bundle.KindVariable, Name: "WMCO_BOOT", Value: "host " + name + ` %PATH%;C:\x`, Present: true}
	config := plan.ServiceConfig{Name: bootService, Start: bundle.StartAuto, CommandLine: bundle.CommandLine([]string{bootProgram, name})}
	t.Run("before", func(t *testing.T) { beforeBoot(t, variable, config) })
	t.Run("after", func(t *testing.T) { afterBoot(t, variable, config) })
}

func beforeBoot(t *testing.T, variable plan.Setting, config plan.ServiceConfig) {
	h := newHost() // with the default limits: the host is slow after its boot
	release, err := h.Lock(t.Context(), "before the boot")
	if err != nil {
		t.Fatal(err)
	}
	_ = release // the boot ends the lock
	facts, err := h.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := left{Facts: facts}
	l.CA, l.Leaf, l.Key = authority(t)
	trusts(t, l, false)
	set(t, h, variable)
	set(t, h, plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of(l.CA)), Value: string(l.CA), Present: true})
	trusts(t, l, true)
	install(t, bootProgram, selftest.ProgramGood)
	if err := h.PutService(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(l)
	if err == nil {
		err = os.WriteFile(fileLeft, data, 0o644)
	}
	if err == nil {
		err = h.Reboot(t.Context(), "wmco test")
	}
	if err != nil {
		t.Fatal(err)
	}
}

func afterBoot(t *testing.T, variable plan.Setting, config plan.ServiceConfig) {
	h := newHost()
	release, err := h.Lock(t.Context(), "after the boot")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(fileLeft)
	if err != nil {
		t.Fatal(err)
	}
	var l left
	if err := json.Unmarshal(data, &l); err != nil {
		t.Fatal(err)
	}
	facts, err := h.Facts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if facts.BootTime == l.Facts.BootTime {
		t.Errorf("the boot time is still %s", facts.BootTime)
	}
	l.Facts.BootTime = facts.BootTime
	if diff := cmp.Diff(l.Facts, facts); diff != "" {
		t.Errorf("facts across the boot (-before +after):\n%s", diff)
	}
	if got := setting(t, h, variable); got != variable {
		t.Errorf("the variable is %+v", got)
	}
	trusts(t, l, true)
	ca := plan.Setting{Kind: bundle.KindTrustedCA, Name: string(bundle.Of(l.CA))}
	set(t, h, ca)
	trusts(t, l, false)
	if s := serviceNow(t, h, bootService); s.Status != plan.ServiceRunning || s.CommandLine != config.CommandLine {
		t.Errorf("the service did not start at boot: %+v", s)
	}
	if err := h.StopService(t.Context(), bootService); err != nil {
		t.Error(err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

func set(t *testing.T, h *Host, s plan.Setting) {
	t.Helper()
	if err := h.Set(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func setting(t *testing.T, h *Host, s plan.Setting) plan.Setting {
	t.Helper()
	all, err := h.Settings(t.Context(), []plan.Setting{s})
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

// authority returns a new CA, and the certificate and key of a server.
func authority(t *testing.T) (ca, leaf, leafKey []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "wmco test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	if ca, err = x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key); err != nil {
		t.Fatal(err)
	}
	server := *template
	server.Subject.CommonName, server.IsCA, server.KeyUsage = "server", false, x509.KeyUsageDigitalSignature
	server.ExtKeyUsage, server.DNSNames = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []string{serverName}
	server.SerialNumber = big.NewInt(2)
	if leaf, err = x509.CreateCertificate(rand.Reader, &server, template, &key.PublicKey, key); err != nil {
		t.Fatal(err)
	}
	if leafKey, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
		t.Fatal(err)
	}
	return ca, leaf, leafKey
}

// serverName is the name of the TLS server of a test.
const serverName = "wmco.test"

// trusts checks whether Windows trusts the CA: it starts a TLS server and a process that connects to it. Only a new process
// sees changes of the root store.
func trusts(t *testing.T, l left, want bool) {
	t.Helper()
	key, err := x509.ParsePKCS8PrivateKey(l.Key)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{l.Leaf}, PrivateKey: key}}}
	server.StartTLS()
	defer server.Close()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	client := exec.Command(own)
	client.Env = append(os.Environ(), asClient+"="+server.Listener.Addr().String())
	out, err := client.CombinedOutput()
	if code := client.ProcessState.ExitCode(); code != 0 && code != exitUntrusted {
		t.Fatalf("connecting to the server: %v: %s", err, out)
	}
	if (err == nil) != want {
		t.Errorf("the server is trusted: %v, want %v: %s", err == nil, want, out)
	}
}

// exitUntrusted is the exit code of a client that does not trust the server.
const exitUntrusted = 2

// connect connects to a server with the roots of Windows.
func connect(address string) int {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: serverName})
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &unknown):
		return exitUntrusted
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = conn.Close()
	return 0
}
