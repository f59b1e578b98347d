<?php
// A receiver by the text of the Standard Webhooks specification. Each line of stdin is a
// request: now, secret, id, timestamp, signatures, body in base64, with tabs between.
function verifies($now, $secret, $id, $timestamp, $signatures, $body)
{
    if (!ctype_digit($timestamp) || abs((int) $now - (int) $timestamp) > 300) {
        return false;
    }
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $signed = $id . '.' . $timestamp . '.' . base64_decode($body);
    $expected = hash_hmac('sha256', $signed, $key, true);
    foreach (explode(' ', $signatures) as $each) {
        $parts = explode(',', $each, 2);
        $given = base64_decode($parts[1] ?? '');
        if ($parts[0] === 'v1' && hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

foreach (file('php://stdin', FILE_IGNORE_NEW_LINES) as $line) {
    echo verifies(...explode("\t", $line)) ? "yes\n" : "no\n";
}
