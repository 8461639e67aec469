Set-Service -Name {{ ps .Name }}
