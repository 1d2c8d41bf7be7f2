/**
 * A certificate for `localhost` and 127.0.0.1 that no authority signed, with its private key: for servers of tests.
 * Everybody knows the key; it must guard nothing.
 */
export const testCertificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBrzCCAVWgAwIBAgIUQOXcYQoCrWO1rjc27vSXaeoxJGEwCgYIKoZIzj0EAwIw
HjEcMBoGA1UEAwwTRGV2bWVzaCB0ZXN0IHNlcnZlcjAgFw0yNjExMjEwNTQ4MTFa
GA8yMTI2MTAyODA1NDgxMVowHjEcMBoGA1UEAwwTRGV2bWVzaCB0ZXN0IHNlcnZl
cjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJkh6UiH9MUtCCuzNhtsBT9NaXHt
QAmOe3FtKJPAF+dRHMjPfzUmaUrKrTMyR3ChptXsW7HuWWyyvFr8fh+hs/GjbzBt
MB0GA1UdDgQWBBTRZzVI58luQ9hRmZjcCQGQherecTAfBgNVHSMEGDAWgBTRZzVI
58luQ9hRmZjcCQGQherecTAPBgNVHRMBAf8EBTADAQH/MBoGA1UdEQQTMBGCCWxv
Y2FsaG9zdIcEfwAAATAKBggqhkjOPQQDAgNIADBFAiBlILfi0jX5cXu4rG/Td9xC
0JrKgfxAz5yBy0FFG9ZSyAIhAIcHnZ9asDP8SXUZ9GZfG5BjDutXN9KF9jUO8KlN
b7Y8
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg44Ga0Mc3vLNE7x8l
YYxGjM7cyXuzhh2WEXQDfWVKMqWhRANCAASZIelIh/TFLQgrszYbbAU/TWlx7UAJ
jntxbSiTwBfnURzIz381JmlKyq0zMkdwoabV7Fux7llssrxa/H4fobPx
-----END PRIVATE KEY-----
`,
} as const;
