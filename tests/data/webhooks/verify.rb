# A receiver by the text of the Standard Webhooks specification. Each line of stdin is a
# request: now, secret, id, timestamp, signatures, body in base64, with tabs between.
require "openssl"

def verifies(now, secret, id, timestamp, signatures, body)
  return false unless timestamp.match?(/\A\d+\z/)
  return false if (now.to_i - timestamp.to_i).abs > 300

  key = secret.delete_prefix("whsec_").unpack1("m")
  signed = "#{id}.#{timestamp}.".b + body.unpack1("m")
  expected = OpenSSL::HMAC.digest("SHA256", key, signed)
  signatures.split(" ").any? do |each|
    version, signature = each.split(",", 2)
    given = (signature || "").unpack1("m")
    version == "v1" && given.bytesize == expected.bytesize &&
      OpenSSL.fixed_length_secure_compare(given, expected)
  end
end

$stdin.each_line do |line|
  puts verifies(*line.chomp.split("\t", -1)) ? "yes" : "no"
end
