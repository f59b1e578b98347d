<?php
// A receiver for a hub's notifications, with PHP 8.1 or newer: this file answers the
// hub under any web server, and works on what it took as a process beside it.
//
//     SECRET=… TOPIC=… php -S 127.0.0.1:9000 php_receiver.php   # or php-fpm
//     SECRET=… TOPIC=… php php_receiver.php                     # the worker
//
// Put your own code into `work`. docs/how-to/receivers.md says what the rest does, and why.

define('SECRET', (string) getenv('SECRET'));
define('TOPIC', (string) getenv('TOPIC'));
define('HUB', (string) getenv('HUB'));
define('TOKEN', (string) getenv('TOKEN'));
define('FOLDER', getenv('FOLDER') ?: 'received');
const INBOX = FOLDER . '/inbox', DONE = FOLDER . '/done', LAST = FOLDER . '/last';
if (SECRET === '' || TOPIC === '') {
    exit("SECRET and TOPIC are to be given\n");
}
foreach ([INBOX, DONE] as $folder) {
    @mkdir($folder, recursive: true);
}

// What your program does with one entry. It may get one twice: keep it by its id, so
// that the second time changes nothing.
function work(array $item): void
{
    echo "entry {$item['id']} ", $item['title'] ?? '', "\n";
}

// The hub asks whether this subscription is meant, or says that it has ended. PHP
// writes the dots in names of parameters as underscores.
function confirm(array $query): array
{
    if (($query['hub_topic'] ?? '') !== TOPIC) {
        return [404, 'not subscribed to this topic'];
    }
    if ($query['hub_mode'] === 'denied') {
        error_log('ended: ' . ($query['hub_reason'] ?? ''));
    }
    return [200, $query['hub_challenge'] ?? ''];
}

// Keep a notification, once, and answer; the worker does the rest.
function take(callable $header, string $body): array
{
    $id = $header('webhook-id');
    if (!is_genuine($header, $body, SECRET) || !preg_match('/\A[\w-]+\z/', $id)) {
        return [403, 'the signature is wrong'];
    }
    if (!file_exists(DONE . "/$id")) {
        write(INBOX . "/$id", $header('fanfare-missed') . "\n" . $body);
    }
    return [204, ''];
}

// $header: a function from a name to a value; $body: the bytes as they came
function is_genuine(callable $header, string $body, string $secret): bool
{
    $id = $header('webhook-id');
    $at = $header('webhook-timestamp');
    if (!ctype_digit($at) || abs(time() - (int) $at) > 300) {
        return false;
    }
    $is_base64 = str_starts_with($secret, 'whsec_');
    $key = $is_base64 ? base64_decode(substr($secret, 6)) : $secret;
    $digest = hash_hmac('sha256', "$id.$at.$body", $key, true);
    $expected = 'v1,' . base64_encode($digest);
    foreach (explode(' ', $header('webhook-signature')) as $given) {
        if (hash_equals($expected, $given)) {
            return true;
        }
    }
    return false;
}

// All of it or nothing, and on the disk before the hub is answered.
function write(string $path, string $content): void
{
    $name = tempnam(FOLDER, 'writing');
    $file = fopen($name, 'w');
    fwrite($file, $content);
    fsync($file);
    fclose($file);
    rename($name, $path);
}

function work_forever(): never
{
    flock($lock = fopen(FOLDER . '/lock', 'w'), LOCK_EX); // one worker at a time
    $before = HUB !== '' ? read_last() : '';
    while (true) {
        $before = resume($before);
        try {
            $ids = array_diff(scandir(INBOX), ['.', '..']);
            usort($ids, fn($a, $b) => position_of($a) <=> position_of($b));
            array_map(work_on(...), $ids);
        } catch (Throwable $error) { // it stays in the inbox, and so its order
            echo "tried again in 5 s: {$error->getMessage()}\n";
            sleep(5);
        }
        usleep($before !== '' ? 5_000_000 : 200_000);
    }
}

function read_last(): string
{
    return file_exists(LAST) ? file_get_contents(LAST) : '';
}

// Ask for what came after the last notification that was here at the start; "" once that
// is done. The hub remembers what was not taken; this is for what was taken and lost
// with a disk.
function resume(string $before): string
{
    if ($before === '') {
        return '';
    }
    [, $position, $subscription] = explode('-', $before);
    $body = json_encode(['record' => $position + 1]);
    try {
        ask("/api/subscriptions/$subscription/replay", $body);
        return '';
    } catch (Throwable $error) {
        echo "could not resume, tried again in 5 s: {$error->getMessage()}\n";
        return $before;
    }
}

function work_on(string $id): void
{
    [$missed, $body] = explode("\n", file_get_contents(INBOX . "/$id"), 2);
    $last = read_last() ?: $id;
    $is_of_log = position_of($id) > 0; // and not a test, for example
    $is_other_epoch = $is_of_log && strtok($id, '-') !== strtok($last, '-');
    if ($missed !== '' || $is_other_epoch) {
        // The hub no longer had these records, or was restored from a backup.
        echo 'gap ', $missed ?: 'a new epoch', "\n";
        read_back();
    }
    $document = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
    if (!isset($document['items'])) {
        echo "the feed's status: {$document['status']['http']}\n";
    }
    array_map(work(...), array_reverse($document['items'] ?? []));
    if ($is_other_epoch || ($is_of_log && position_of($id) >= position_of($last))) {
        write(LAST, $id);
    }
    rename(INBOX . "/$id", DONE . "/$id");
}

// Ids are EPOCH-POSITION-SUBSCRIPTION.
function position_of(string $id): int
{
    return preg_match('/\A\w+-(\d+)-\d+\z/', $id, $found) ? (int) $found[1] : 0;
}

// The topic's newest entries, which are more than were missed, or all there are.
function read_back(): void
{
    if (HUB !== '') {
        $query = ['hub.mode' => 'retrieve', 'hub.topic' => TOPIC, 'count' => 50];
        $found = ask('/?' . http_build_query([...$query, 'format' => 'json']));
        array_map(work(...), array_reverse($found['items']));
    }
}

function ask(string $path, ?string $body = null): array
{
    $options = [
        'method' => $body === null ? 'GET' : 'POST',
        'header' => ['Authorization: Bearer ' . TOKEN, 'Content-Type: application/json'],
        'content' => $body ?? '',
        'timeout' => 30,
    ];
    $answer = @file_get_contents(HUB . $path, context: stream_context_create([
        'http' => $options,
    ]));
    if ($answer === false) {
        throw new RuntimeException(error_get_last()['message']);
    }
    return json_decode($answer, true, flags: JSON_THROW_ON_ERROR);
}

if (PHP_SAPI === 'cli') {
    work_forever();
}
$header = fn($name) => $_SERVER['HTTP_' . strtoupper(strtr($name, '-', '_'))] ?? '';
[$status, $text] = $_SERVER['REQUEST_METHOD'] === 'POST'
    ? take($header, file_get_contents('php://input'))
    : confirm($_GET);
http_response_code($status);
header('Content-Type: text/plain; charset=utf-8');
echo $text;
