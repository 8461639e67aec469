# Lets the Windows Machine Config Operator reach this machine over SSH. Made by wmco; safe to run again at any time.
#Requires -RunAsAdministrator
#Requires -PSEdition Desktop
$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'

# The OpenSSH server is part of Windows since Server 2025 and an optional capability before. It comes from Windows Update, which
# a host that has just started may not reach yet.
if (-not (Get-Service -Name 'sshd' -ErrorAction SilentlyContinue)) {
    $attempts = 10
    for ($attempt = 1; $attempt -le $attempts; $attempt++) {
        try {
            Add-WindowsCapability -Online -Name 'OpenSSH.Server~~~~0.0.1.0' -ErrorAction Stop | Out-Null
            break
        } catch {
            $problem = $_.Exception.Message
        }
        Write-Output "installing the OpenSSH server, attempt $attempt of ${attempts}: $problem"
        if ($attempt -eq $attempts) {
            throw "the OpenSSH server is not installed after $attempts attempts (fix: let the host reach Windows Update, or use an image with the OpenSSH server): $problem"
        }
        Start-Sleep -Seconds 30
    }
}
Set-Service -Name 'sshd' -StartupType Automatic

# What another user of the host has made where sshd looks may hold a key or a configuration of theirs, or lead elsewhere.
function Assert-Owner {
    param([string]$Path)
    $item = Get-Item -LiteralPath $Path -Force
    $owner = $item.GetAccessControl('Owner').GetOwner([System.Security.Principal.SecurityIdentifier]).Value
    # SYSTEM, Administrators, TrustedInstaller, the built-in administrator
    $trusted = '^S-1-5-(18|32-544|80-956008885-3418522649-1831038044-1853292631-2271478464|21-.*-500)$'
    if (($item.Attributes -band [System.IO.FileAttributes]::ReparsePoint) -or ($owner -notmatch $trusted)) {
        throw "$Path is a link or belongs to $owner, and sshd would trust it (fix: look at what it is, delete it or give it to Administrators with takeown.exe /A /F, and run this again)"
    }
}

# sshd does not start, and logs nothing, if others than Administrators (BA) and SYSTEM (SY) can write to its folders: others (AU) may read.
$folders = [ordered]@{
    'ssh'      = 'O:BAD:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;AU)'
    'ssh\logs' = 'O:BAD:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)'
}
foreach ($name in $folders.Keys) {
    $folder = Join-Path -Path $env:ProgramData -ChildPath $name
    $acl = New-Object -TypeName 'System.Security.AccessControl.DirectorySecurity'
    $acl.SetSecurityDescriptorSddlForm($folders[$name], 'Owner, Access')
    # One that does not exist is made before another user makes it.
    [System.IO.Directory]::CreateDirectory($folder, $acl) | Out-Null
    Assert-Owner -Path $folder
    if (Test-Path -LiteralPath $folder -PathType Container) {
        [System.IO.Directory]::SetAccessControl($folder, $acl)
    }
}
foreach ($name in 'sshd_config', 'administrators_authorized_keys') {
    $file = Join-Path -Path $env:ProgramData -ChildPath "ssh\$name"
    if (Test-Path -LiteralPath $file) {
        Assert-Owner -Path $file
    }
}
# Its first start writes the host keys and the default configuration.
Start-Service -Name 'sshd'

# The operator's key can log in beside those that the host has. sshd trusts the file if only Administrators and SYSTEM can write it.
$keys = Join-Path -Path $env:ProgramData -ChildPath 'ssh\administrators_authorized_keys'
$key = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKAApkO0boja/JwuSYdW7OWtct1mbyWCgltfaN7WopYa'
if (-not (Test-Path -LiteralPath $keys) -or @(Get-Content -LiteralPath $keys) -cnotcontains $key) {
    # The file may end without the end of a line. sshd skips an empty one.
    [System.IO.File]::AppendAllText($keys, "`r`n$key`r`n")
}
$acl = New-Object -TypeName 'System.Security.AccessControl.FileSecurity'
$acl.SetSecurityDescriptorSddlForm('O:BAD:P(A;;FA;;;BA)(A;;FA;;;SY)', 'Owner, Access')
[System.IO.File]::SetAccessControl($keys, $acl)

# The first value of a keyword counts, unless a Match block has another. Logins with a password stay as they are.
$config = Join-Path -Path $env:ProgramData -ChildPath 'ssh\sshd_config'
$before = @(Get-Content -LiteralPath $config)
$others = @($before -notmatch '^\s*PubkeyAuthentication\b')
$after = @('PubkeyAuthentication yes') + $others
if (($before -join "`n") -cne ($after -join "`n")) {
    Set-Content -LiteralPath $config -Value $after -Encoding Ascii
    Restart-Service -Name 'sshd'
}

# The rules are the ones that the operator looks after later, by the same names.
$ports = @{
    'wmco-ssh' = 22
    'wmco-windows-exporter' = 9182
    'wmco-kubelet' = 10250
}
foreach ($name in $ports.Keys) {
    if (-not (Get-NetFirewallRule -Name $name -ErrorAction SilentlyContinue)) {
        $rule = @{
            Name        = $name
            DisplayName = $name
            Direction   = 'Inbound'
            Action      = 'Allow'
            Protocol    = 'TCP'
            LocalPort   = $ports[$name]
            Profile     = 'Any'
        }
        New-NetFirewallRule @rule | Out-Null
    }
}
