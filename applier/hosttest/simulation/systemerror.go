package simulation

import (
	"fmt"
	"io/fs"
)

// SystemError is a Windows system error code (learn.microsoft.com/windows/win32/debug/system-error-codes).
type SystemError int

// The codes that services and files give.
const (
	ErrFileNotFound            SystemError = 2
	ErrAccessDenied            SystemError = 5
	ErrSharingViolation        SystemError = 32
	ErrInvalidParameter        SystemError = 87
	ErrDiskFull                SystemError = 112
	ErrDirNotEmpty             SystemError = 145
	ErrAlreadyExists           SystemError = 183
	ErrDirectory               SystemError = 267
	ErrDependentServices       SystemError = 1051
	ErrServiceRequestTimeout   SystemError = 1053
	ErrServiceAlreadyRunning   SystemError = 1056
	ErrServiceDisabled         SystemError = 1058
	ErrCircularDependency      SystemError = 1059
	ErrServiceDoesNotExist     SystemError = 1060
	ErrProcessAborted          SystemError = 1067
	ErrServiceDependencyFail   SystemError = 1068
	ErrServiceMarkedForDelete  SystemError = 1072
	ErrServiceDependencyAbsent SystemError = 1075
	ErrIODevice                SystemError = 1117
	ErrNotFound                SystemError = 1168
)

var systemErrors = map[SystemError]string{
	ErrFileNotFound:            "the file is not there",
	ErrAccessDenied:            "access is denied",
	ErrSharingViolation:        "another program uses the file",
	ErrInvalidParameter:        "the parameter is not right",
	ErrDiskFull:                "there is no space left on the disk",
	ErrDirNotEmpty:             "the folder is not empty",
	ErrAlreadyExists:           "something of that name is there already",
	ErrDirectory:               "what stands there is no folder",
	ErrDependentServices:       "running services depend on it",
	ErrServiceRequestTimeout:   "the service did not respond in time",
	ErrServiceAlreadyRunning:   "the service is on its way already",
	ErrServiceDisabled:         "the service is disabled",
	ErrCircularDependency:      "the service depends on itself",
	ErrServiceDoesNotExist:     "there is no such service",
	ErrProcessAborted:          "the program ended at once",
	ErrServiceDependencyFail:   "a service that it depends on does not start",
	ErrServiceMarkedForDelete:  "the service is marked for deletion",
	ErrServiceDependencyAbsent: "a service that it depends on is not there",
	ErrIODevice:                "the disk does not work",
	ErrNotFound:                "there is no such thing",
}

func (e SystemError) Error() string {
	return fmt.Sprintf("%s (Windows error %d)", systemErrors[e], int(e))
}

// Is makes what is not there fs.ErrNotExist, as on Windows.
func (e SystemError) Is(target error) bool {
	return target == fs.ErrNotExist && e == ErrFileNotFound
}
