// A receiver by the text of the Standard Webhooks specification. Each line of stdin is a
// request: now, secret, id, timestamp, signatures, body in base64, with tabs between.
const crypto = require("crypto");

function verifies([now, secret, id, timestamp, signatures, body]) {
  if (!/^\d+$/.test(timestamp) || Math.abs(Number(now) - Number(timestamp)) > 300) {
    return false;
  }
  const mac = crypto.createHmac("sha256", Buffer.from(secret.slice(6), "base64"));
  mac.update(`${id}.${timestamp}.`).update(Buffer.from(body, "base64"));
  const expected = mac.digest();
  return signatures.split(" ").some((each) => {
    const [version, signature] = each.split(",");
    const given = Buffer.from(signature || "", "base64");
    return (
      version === "v1" &&
      given.length === expected.length &&
      crypto.timingSafeEqual(given, expected)
    );
  });
}

const lines = require("fs").readFileSync(0, "utf8").split("\n").slice(0, -1);
for (const line of lines) console.log(verifies(line.split("\t")) ? "yes" : "no");
