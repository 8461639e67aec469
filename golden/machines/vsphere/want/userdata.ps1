<powershell>
# Lets the Windows Machine Config Operator reach this machine over SSH. Made by wmco; safe to run again at any time.
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

# sshd does not start, and logs nothing, if others than Administrators (BA) and SYSTEM (SY) can write to its folders: others (AU) may read.
$folders = [ordered]@{
    'ssh'      = 'O:BAD:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)(A;OICI;0x1200a9;;;AU)'
    'ssh\logs' = 'O:BAD:P(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)'
}
foreach ($name in $folders.Keys) {
    $folder = Join-Path -Path $env:ProgramData -ChildPath $name
    $acl = New-Object -TypeName 'System.Security.AccessControl.DirectorySecurity'
    $acl.SetSecurityDescriptorSddlForm($folders[$name], 'Owner, Access')
    if (Test-Path -LiteralPath $folder -PathType Container) {
        [System.IO.Directory]::SetAccessControl($folder, $acl)
    }
}
# Its first start writes the host keys and the default configuration.
Start-Service -Name 'sshd'

# Only the operator's key can log in. sshd trusts the file if only Administrators and SYSTEM can write it.
$keys = Join-Path -Path $env:ProgramData -ChildPath 'ssh\administrators_authorized_keys'
Set-Content -LiteralPath $keys -Value 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKAApkO0boja/JwuSYdW7OWtct1mbyWCgltfaN7WopYa' -Encoding Ascii
$acl = New-Object -TypeName 'System.Security.AccessControl.FileSecurity'
$acl.SetSecurityDescriptorSddlForm('O:BAD:P(A;;FA;;;BA)(A;;FA;;;SY)', 'Owner, Access')
[System.IO.File]::SetAccessControl($keys, $acl)

# The first value of a keyword counts, unless a Match block has another.
$config = Join-Path -Path $env:ProgramData -ChildPath 'ssh\sshd_config'
$before = @(Get-Content -LiteralPath $config)
$others = @($before -notmatch '^\s*(PubkeyAuthentication|PasswordAuthentication)\b')
$after = @('PubkeyAuthentication yes', 'PasswordAuthentication no') + $others
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

# The operator signs in to this account. A disabled one is enabled with a password that nobody knows.
$account = Get-LocalUser -Name 'Administrator'
if (-not $account.Enabled) {
    $bytes = New-Object -TypeName 'byte[]' -ArgumentList 32
    $random = [System.Security.Cryptography.RandomNumberGenerator]::Create()
    $random.GetBytes($bytes)
    $random.Dispose()
    # What Windows wants of a password: upper case, lower case, a digit and another character.
    $text = 'Aa1!' + [System.Convert]::ToBase64String($bytes)
    $password = ConvertTo-SecureString -String $text -AsPlainText -Force
    Set-LocalUser -InputObject $account -Password $password
    Enable-LocalUser -InputObject $account
}
</powershell>
<persist>true</persist>
