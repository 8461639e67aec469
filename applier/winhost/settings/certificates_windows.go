package settings

import (
	"bytes"
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// The providers of the root store (learn.microsoft.com/windows/win32/seccrypto/system-store-locations). The whole store
// has all that the host trusts. The part in the registry has what an administrator changes, without the certificates of
// group policy and the Windows root program.
const (
	wholeStore    = windows.CERT_STORE_PROV_SYSTEM_W
	registryStore = windows.CERT_STORE_PROV_SYSTEM_REGISTRY_W
	encodingX509  = windows.X509_ASN_ENCODING | windows.PKCS_7_ASN_ENCODING
	// commit writes the changes now instead of at the end of the process
	// (learn.microsoft.com/windows/win32/api/wincrypt/nf-wincrypt-certcontrolstore, CERT_STORE_CTRL_COMMIT).
	commit = 3
)

// RootStore is LocalMachine\Root.
type RootStore struct{}

// withRoots opens the store, or the part of it that the provider has, for the time of use.
func withRoots(provider uintptr, use func(store windows.Handle) error) error {
	name, err := windows.UTF16PtrFromString("Root")
	if err != nil {
		return err
	}
	store, err := windows.CertOpenStore(provider, 0, 0, windows.CERT_SYSTEM_STORE_LOCAL_MACHINE, uintptr(unsafe.Pointer(name)))
	if err != nil {
		return fmt.Errorf("opening the root store: %w", err)
	}
	return errors.Join(use(store), windows.CertCloseStore(store, 0))
}

// encodedCertificate returns the DER of a certificate.
func encodedCertificate(c *windows.CertContext) []byte { return unsafe.Slice(c.EncodedCert, c.Length) }

// eachRoot calls see with every certificate until it returns false. Then the caller owns the last one
// (learn.microsoft.com/windows/win32/api/wincrypt/nf-wincrypt-certenumcertificatesinstore).
func eachRoot(store windows.Handle, see func(*windows.CertContext) bool) error {
	var c *windows.CertContext
	for {
		var err error
		c, err = windows.CertEnumCertificatesInStore(store, c)
		if c == nil {
			if errors.Is(err, windows.Errno(windows.CRYPT_E_NOT_FOUND)) || errors.Is(err, windows.ERROR_NO_MORE_FILES) {
				return nil
			}
			return err
		}
		if !see(c) {
			return nil
		}
	}
}

// TrustedRoots returns all certificates of the whole store, as DER.
func (RootStore) TrustedRoots() ([][]byte, error) {
	var all [][]byte
	err := withRoots(wholeStore, func(store windows.Handle) error {
		return eachRoot(store, func(c *windows.CertContext) bool {
			all = append(all, bytes.Clone(encodedCertificate(c)))
			return true
		})
	})
	return all, err
}

// AddRoot adds a certificate to the part in the registry.
func (RootStore) AddRoot(der []byte) error {
	c, err := windows.CertCreateCertificateContext(encodingX509, &der[0], uint32(len(der))) //nolint:gosec // a certificate
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	defer windows.CertFreeCertificateContext(c) //nolint:errcheck // it never fails
	return withRoots(registryStore, func(store windows.Handle) error {
		if err := windows.CertAddCertificateContextToStore(store, c, windows.CERT_STORE_ADD_USE_EXISTING, nil); err != nil {
			return err
		}
		return commitStore(store)
	})
}

// RemoveRoot removes the certificate with these bytes from the part in the registry, if it has it.
func (RootStore) RemoveRoot(der []byte) error {
	return withRoots(registryStore, func(store windows.Handle) error {
		var found *windows.CertContext
		err := eachRoot(store, func(c *windows.CertContext) bool {
			if !bytes.Equal(encodedCertificate(c), der) {
				return true
			}
			found = c
			return false
		})
		if err != nil || found == nil {
			return err
		}
		// CertDeleteCertificateFromStore frees the certificate too.
		if err := windows.CertDeleteCertificateFromStore(found); err != nil {
			return err
		}
		return commitStore(store)
	})
}

func commitStore(store windows.Handle) error {
	control := windows.NewLazySystemDLL("crypt32.dll").NewProc("CertControlStore")
	if ok, _, err := control.Call(uintptr(store), 0, commit, 0); ok == 0 {
		return fmt.Errorf("writing the root store: %w", err)
	}
	return nil
}
