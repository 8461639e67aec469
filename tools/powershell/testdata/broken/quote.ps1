Get-Service -Name 'sshd
