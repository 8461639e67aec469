package winhost

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier"
	"wmco/bundle"
)

// What of a security descriptor is ours: the owner and the DACL, which takes nothing over from above
// (learn.microsoft.com/windows/win32/secauthz/security-information).
const ownerAndDACL = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION

// securityAttributes give a file the access at its creation
// (learn.microsoft.com/windows/win32/api/wtypesbase/ns-wtypesbase-security_attributes).
func securityAttributes(access bundle.Access, kind applier.FileKind) (*windows.SecurityAttributes, error) {
	sd, err := securityDescriptor(access, kind)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}, nil
}

// sameAttributes give a new file the access of an open one.
func sameAttributes(file windows.Handle) (*windows.SecurityAttributes, error) {
	sd, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}, nil
}

func securityDescriptor(access bundle.Access, kind applier.FileKind) (*windows.SECURITY_DESCRIPTOR, error) {
	text, err := descriptor(access, kind)
	if err != nil {
		return nil, err
	}
	sd, err := windows.SecurityDescriptorFromString(text)
	if err != nil {
		return nil, fmt.Errorf("reading security descriptor %s: %w", text, err)
	}
	return sd, nil
}

// access tells who may read and write an open file. It is empty where the machine cannot tell: Wine keeps of a DACL what
// fits into the mode of a Linux file.
func (h *Host) access(file windows.Handle, kind applier.FileKind) (bundle.Access, error) {
	if h.wine {
		return "", nil
	}
	sd, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, ownerAndDACL)
	if err != nil {
		return "", err
	}
	return accessOf(sd.String(), kind), nil
}

// setAccess gives an open folder the access, and with it what inherits from the folder
// (learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-setsecurityinfo).
func setAccess(file windows.Handle, access bundle.Access, kind applier.FileKind) error {
	sd, err := securityDescriptor(access, kind)
	if err != nil {
		return err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return err
	}
	dacl, _, err := sd.DACL()
	if err != nil {
		return err
	}
	return windows.SetSecurityInfo(file, windows.SE_FILE_OBJECT, ownerAndDACL|windows.PROTECTED_DACL_SECURITY_INFORMATION, owner, nil, dacl, nil)
}

// isWine tells whether this is Wine, which names itself to those who ask (gitlab.winehq.org/wine/wine/-/wikis/Developer-FAQ).
// It is asked for one thing only: Wine hands back another DACL than the one that was set, so there is nothing to compare.
func isWine() bool {
	return windows.NewLazySystemDLL("ntdll.dll").NewProc("wine_get_version").Find() == nil
}
