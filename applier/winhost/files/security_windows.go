package files

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"wmco/applier/plan"
	"wmco/bundle"
)

// ownerAndDACL are the parts of a security descriptor that are set and compared
// (learn.microsoft.com/windows/win32/secauthz/security-information).
const ownerAndDACL = windows.OWNER_SECURITY_INFORMATION | windows.DACL_SECURITY_INFORMATION

// securityAttributes returns what gives a file the access when it is created
// (learn.microsoft.com/windows/win32/api/wtypesbase/ns-wtypesbase-security_attributes).
func securityAttributes(access bundle.Access, kind plan.FileKind) (*windows.SecurityAttributes, error) {
	sd, err := securityDescriptor(access, kind)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}, nil
}

// sameAttributes returns what gives a new file the access of an open one.
func sameAttributes(file windows.Handle) (*windows.SecurityAttributes, error) {
	sd, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return nil, err
	}
	return &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd}, nil
}

func securityDescriptor(access bundle.Access, kind plan.FileKind) (*windows.SECURITY_DESCRIPTOR, error) {
	text, err := accessDescriptor(access, kind)
	if err != nil {
		return nil, err
	}
	sd, err := windows.SecurityDescriptorFromString(text)
	if err != nil {
		return nil, fmt.Errorf("reading security descriptor %s: %w", text, err)
	}
	return sd, nil
}

// accessAndOwner returns the access and the owner of an open file, "" if they are not available
// (learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-getsecurityinfo).
func (f Files) accessAndOwner(file windows.Handle, kind plan.FileKind) (bundle.Access, plan.Owner, error) {
	if f.NoACLs {
		return "", "", nil
	}
	sd, err := windows.GetSecurityInfo(file, windows.SE_FILE_OBJECT, ownerAndDACL)
	if err != nil {
		return "", "", err
	}
	text := sd.String()
	return accessOf(text, kind), ownerOf(text), nil
}

// setAccess gives an open folder the access, and all in it that inherits from the folder
// (learn.microsoft.com/windows/win32/api/aclapi/nf-aclapi-setsecurityinfo).
func setAccess(file windows.Handle, access bundle.Access, kind plan.FileKind) error {
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
