"""Addresses that no request may reach, in all the ways in which they can be written."""

from __future__ import annotations

LOOPBACK_HOSTS = (
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0x7f000001",
    "0x7f.1",
    "0x7f.0.0.1",
    "0X7F.0x0.0x0.0x1",
    "127.000.000.001",
    "127.0.0.1..",
    "0",
    "0.0.0.0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "any.localhost",
    "\u0661\u0662\u0667.0.0.1",  # Arabic-Indic digits
    "\uff11\uff12\uff17.0.0.1",  # full-width digits
    "\u2460\u2461\u2466.0.0.1",  # circled digits
    "\U0001d7cf\U0001d7d0\U0001d7d5.0.0.1",  # bold digits of mathematics
    "127\u30020\u30020\u30021",  # ideographic full stops
    "127\uff0e0\uff0e0\uff0e1",  # full-width full stops
    "127\uff610\uff610\uff611",  # half-width ideographic full stops
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",  # full-width letters
    "loc\u00adalhost",  # a soft hyphen, which names are prepared without
    "127%2e0%2e0%2e1",
    "%31%32%37.0.0.1",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1%25lo]",
    "[::1%25lo]",
    "user:password@127.0.0.1",
    "127.0.0.1:80@127.0.0.1",
    "8.8.8.8%40127.0.0.1",
)
"""All that one resolver or another takes for this machine."""

PRIVATE_HOSTS = (
    "10.0.0.1",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "172.16.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[100::1]",
    "[2001::1]",
    "[2001:0:a9fe:a9fe::]",
    "[2001:db8::1]",
    "[2002:a00:1::1]",
    "[2002:a9fe:a9fe::]",
    "[3fff::1]",
    "[5f00::1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::10.0.0.1]",
    "[64:ff9b:1::a00:1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:a00:1]",
    "[::169.254.169.254]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[ff0e::1]",
)
"""Private, link-local, reserved, multicast; and IPv6 with one of these inside."""

ODD_URLS = (
    "http://8.8.8.8\\@127.0.0.1:{port}/",
    "http://8.8.8.8:80\\@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@8.8.8.8/",
    "http://127.0.0.1:{port}#@8.8.8.8/",
    "http://127.0.0.1:{port}?@8.8.8.8/",
    "http://8.8.8.8@127.0.0.1:{port}/",
    "http://8.8.8.8:80@127.0.0.1:{port}/",
    "http://a@b@127.0.0.1:{port}/",
    "http:@127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "http:\\\\127.0.0.1:{port}/",
    "http:/\\127.0.0.1:{port}/",
    "\\\\127.0.0.1:{port}/",
    "/\\127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "//[::1]:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "\thttp://127.0.0.1:{port}/",
    "ht\ttp://127.0.0.1:{port}/",
    "http://127.0.0\t.1:{port}/",
    "http://127.0.0.1%09:{port}/",
    "http://127.0.0.1%00.example:{port}/",
    "http://127.0.0.1%0d%0aHost:%20x:{port}/",
    "http://127.0.0.1:{port}%0d%0a/",
    "http://127.0.0.1:0{port}/",
    "http://127.0.0.1:+{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[::1]@8.8.8.8:{port}/",
    "http://[::1:{port}/",
    "ws://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_GET%20/",
    "dict://127.0.0.1:{port}/",
    "ldap://127.0.0.1:{port}/",
    "jar:http://127.0.0.1:{port}/!/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "data:text/xml,<rss/>",
    "javascript:fetch('http://127.0.0.1:{port}/')",
)
"""Where parsers of URLs disagree, and what is none of the web's."""


def forbidden_urls(port: int) -> list[str]:
    """Each of them with what listens on a port of this machine."""
    plain = [f"http://{host}:{port}/" for host in LOOPBACK_HOSTS]
    odd = [url.replace("{port}", str(port)) for url in ODD_URLS]
    return plain + odd + long_urls(port)


def long_urls(port: int) -> list[str]:
    """Longer than Superfeedr takes, than a name may be, and than anything should be."""
    return [
        f"http://127.0.0.1:{port}/{'a' * 300}",
        f"http://{'a.' * 200}localhost:{port}/",
        f"http://{'a' * 300}@127.0.0.1:{port}/",
        f"http://127.0.0.1:{port}/{'a' * 65_536}",
    ]
