# A receiver by the text of the Standard Webhooks specification. Each line of stdin is a
# request: now, secret, id, timestamp, signatures, body in base64, with tabs between.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256);
use MIME::Base64 qw(decode_base64);

sub verifies {
    my ($now, $secret, $id, $timestamp, $signatures, $body) = @_;
    return 0 unless $timestamp =~ /\A[0-9]+\z/ && abs($now - $timestamp) <= 300;
    $secret =~ s/\Awhsec_//;
    my $signed = "$id.$timestamp." . decode_base64($body);
    my $expected = hmac_sha256($signed, decode_base64($secret));
    for my $each (split / /, $signatures) {
        my ($version, $given) = split /,/, $each, 2;
        return 1 if $version eq 'v1' && decode_base64($given // '') eq $expected;
    }
    return 0;
}

while (my $line = <STDIN>) {
    chomp $line;
    print verifies(split /\t/, $line, -1) ? "yes\n" : "no\n";
}
