module github.com/latchkey/latchkey/clients/go

go 1.24
