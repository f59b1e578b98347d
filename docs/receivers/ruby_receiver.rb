# A receiver for a hub's notifications: a Rack application, for puma, Rails and others.
# By itself it runs with webrick (gem install webrick).
#
#     SECRET=… TOPIC=… PORT=9000 ruby ruby_receiver.rb
#
# Put your own code into `work`. docs/how-to/receivers.md says what the rest does, and why.

require "fileutils"
require "json"
require "net/http"
require "openssl"
require "stringio"
require "tempfile"
require "uri"

SECRET = ENV.fetch("SECRET") # of the subscription
TOPIC = ENV.fetch("TOPIC") # what is subscribed to
HUB = ENV.fetch("HUB", "") # its URL; without it nothing is asked of the hub
TOKEN = ENV.fetch("TOKEN", "") # of the account, with the scope retrieve
FOLDER = ENV.fetch("FOLDER", "received")
INBOX, DONE, LAST = %w[inbox done last].map { |name| File.join(FOLDER, name) }
FileUtils.mkdir_p([INBOX, DONE])
$stdout.sync = true

# What your program does with one entry. It may get one twice: keep it by its id, so
# that the second time changes nothing.
def work(item)
  puts "entry #{item["id"]} #{item["title"]}"
end

# The hub asks whether this subscription is meant, or says that it has ended.
def confirm(query)
  return [404, "not subscribed to this topic"] unless query["hub.topic"] == TOPIC

  puts "ended: #{query["hub.reason"]}" if query["hub.mode"] == "denied"
  [200, query["hub.challenge"].to_s]
end

# Keep a notification, once, and answer; the worker does the rest.
def take(headers, body)
  id = headers["webhook-id"].to_s
  unless genuine?(headers, body, SECRET) && id.match?(/\A[\w-]+\z/)
    return [403, "the signature is wrong"]
  end

  missed = headers["fanfare-missed"]
  write(File.join(INBOX, id), "#{missed}\n".b + body) unless File.exist?(File.join(DONE, id))
  [204, ""]
end

# headers: by names in lower case; body: the bytes as they came
def genuine?(headers, body, secret)
  id, at = headers["webhook-id"].to_s, headers["webhook-timestamp"].to_s
  return false unless at.match?(/\A\d+\z/) && (Time.now.to_i - at.to_i).abs <= 300

  key = secret.start_with?("whsec_") ? secret[6..].unpack1("m") : secret
  digest = OpenSSL::HMAC.digest("SHA256", key, "#{id}.#{at}.".b + body.b)
  expected = "v1," + [digest].pack("m0")
  headers["webhook-signature"].to_s.split.any? do |given|
    given.bytesize == expected.bytesize &&
      OpenSSL.fixed_length_secure_compare(given, expected)
  end
end

# All of it or nothing, and on the disk before the hub is answered.
def write(path, content)
  file = Tempfile.create("writing", FOLDER, binmode: true)
  file.write(content)
  file.fsync
  file.close
  File.rename(file.path, path)
end

def work_forever
  lock = File.open(File.join(FOLDER, "lock"), "w")
  lock.flock(File::LOCK_EX) # one worker at a time, of all processes
  before = HUB.empty? ? "" : read_last
  loop do
    before = resume(before)
    begin
      Dir.children(INBOX).sort_by { |id| position_of(id) }.each { |id| work_on(id) }
    rescue StandardError => error # it stays in the inbox, and so its order
      puts "tried again in 5 s: #{error.message}"
      sleep 5
    end
    sleep(before.empty? ? 0.2 : 5)
  end
end

def read_last = File.exist?(LAST) ? File.read(LAST) : ""

# Ask for what came after the last notification that was here at the start; "" once that
# is done. The hub remembers what was not taken; this is for what was taken and lost
# with a disk.
def resume(before)
  return "" if before.empty?

  _, position, subscription = before.split("-")
  ask("/api/subscriptions/#{subscription}/replay", { record: position.to_i + 1 })
  ""
rescue StandardError => error
  puts "could not resume, tried again in 5 s: #{error.message}"
  before
end

def work_on(id)
  missed, body = File.binread(File.join(INBOX, id)).split("\n", 2)
  last = read_last
  last = id if last.empty?
  is_of_log = position_of(id).positive? # and not a test, for example
  is_other_epoch = is_of_log && id.split("-")[0] != last.split("-")[0]
  if !missed.empty? || is_other_epoch
    # The hub no longer had these records, or was restored from a backup.
    puts "gap #{missed.empty? ? "a new epoch" : missed}"
    read_back
  end
  document = JSON.parse(body)
  puts "the feed's status: #{document["status"]["http"]}" unless document["items"]
  document.fetch("items", []).reverse_each { |item| work(item) }
  if is_other_epoch || (is_of_log && position_of(id) >= position_of(last))
    write(LAST, id)
  end
  File.rename(File.join(INBOX, id), File.join(DONE, id))
end

# Ids are EPOCH-POSITION-SUBSCRIPTION.
def position_of(id) = id[/\A\w+-(\d+)-\d+\z/, 1].to_i

# The topic's newest entries, which are more than were missed, or all there are.
def read_back
  return if HUB.empty?

  query = { "hub.mode": "retrieve", "hub.topic": TOPIC, count: 50, format: "json" }
  found = ask("/?#{URI.encode_www_form(query)}")
  found["items"].reverse_each { |item| work(item) }
end

def ask(path, body = nil)
  uri = URI(HUB + path)
  headers = { "Authorization" => "Bearer #{TOKEN}", "Content-Type" => "application/json" }
  request = (body ? Net::HTTP::Post : Net::HTTP::Get).new(uri, headers)
  request.body = body.to_json if body
  is_tls = uri.scheme == "https"
  answer = Net::HTTP.start(uri.host, uri.port, use_ssl: is_tls, read_timeout: 30) do |http|
    http.request(request)
  end
  raise "#{answer.code} #{answer.body}" unless answer.is_a?(Net::HTTPSuccess)

  JSON.parse(answer.body)
end

# What Rack gives: headers as HTTP_NAME.
RECEIVER = lambda do |env|
  headers = Hash.new { |_, name| env["HTTP_#{name.upcase.tr("-", "_")}"] }
  status, text =
    if env["REQUEST_METHOD"] == "POST"
      take(headers, env["rack.input"].read.to_s)
    else
      confirm(URI.decode_www_form(env["QUERY_STRING"].to_s).to_h)
    end
  [status, { "content-type" => "text/plain; charset=utf-8" }, [text]]
end

if __FILE__ == $PROGRAM_NAME
  require "webrick"
  port = ENV.fetch("PORT", "9000").to_i
  silent = { AccessLog: [], Logger: WEBrick::Log.new($stderr, WEBrick::Log::WARN) }
  server = WEBrick::HTTPServer.new(Port: port, BindAddress: "127.0.0.1", **silent)
  servlet = Class.new(WEBrick::HTTPServlet::AbstractServlet) do
    def service(request, response)
      input = StringIO.new(request.body.to_s)
      status, headers, body = RECEIVER.call(request.meta_vars.merge("rack.input" => input))
      response.status = status
      headers.each { |name, value| response[name] = value }
      response.body = body.join
    end
  end
  server.mount("/", servlet)
end
Thread.new { work_forever }
server&.start
