package reason

// Reasons of findings about the executables of --payload.
const (
	PayloadInvalid    = "PayloadInvalid"
	PayloadIncomplete = "PayloadIncomplete"
)

func executableReasons() []Entry {
	return []Entry{
		{PayloadInvalid, isError, "The folder of `--payload` is not as the build wrote it: a file is missing, changed or unknown, or its list is of another version.", "Build it again: `make payload`."},
		{PayloadIncomplete, isError, "The payload lacks an executable that nodes on this platform need.", "Build the missing executable: `make payload PAYLOAD=NAME`, with the name in the message."},
	}
}
