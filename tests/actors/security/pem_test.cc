#include "stagecraft/actors/security/pem.h"

#include <functional>
#include <string>

#include <openssl/err.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::security {
namespace {

using Catch::Matchers::ContainsSubstring;

/// The certificate and the key of a member.
struct MadePem {
  MadePem() {
    const tests::TemporaryFolder folder;
    const std::string dir = folder.path() + "/cluster";
    make_credentials(dir, {.members = 1, .durable = false});
    certificate = tests::read_text_file(dir + "/worker-0/certificate.pem");
    key = tests::read_text_file(dir + "/worker-0/key.pem");
  }

  std::string certificate, key;
};

const MadePem& made() {
  static const MadePem pem;
  return pem;
}

/// Returns the message; OpenSSL's queue must be empty afterwards, and no line of the text told.
std::string pem_fault(const std::function<void()>& read, const std::string& text) {
  const std::string message = refusal(read, Errc::UsageFile);
  CHECK(ERR_peek_error() == 0);
  CHECK_THAT(message, ContainsSubstring("'it.pem'"));
  if (text.size() > 200) {
    CHECK(message.find(text.substr(100, 20)) == std::string::npos);
  }
  return message;
}

std::string certificate_fault(const std::string& text) {
  return pem_fault([&] { (void)certificate_of_pem("it.pem", text); }, text);
}

std::string key_fault(const std::string& text) {
  return pem_fault([&] { (void)key_of_pem("it.pem", SecretText(text)); }, text);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
  return text;
}

TEST_CASE("PEM text is written as it was read", "[security][pem]") {
  CHECK(to_pem(certificate_of_pem("it.pem", made().certificate)) == made().certificate);
  CHECK(to_pem(key_of_pem("it.pem", SecretText(made().key))).text() == made().key);
  // Text around a block is for people.
  CHECK(to_pem(certificate_of_pem("it.pem", "worker 0\n" + made().certificate + "\n")) ==
        made().certificate);
}

TEST_CASE("each fault of a file has its own words", "[security][pem][bad-input]") {
  const std::string& certificate = made().certificate;
  CHECK_THAT(certificate_fault(""), ContainsSubstring("is empty, expected a certificate"));
  CHECK_THAT(key_fault(""), ContainsSubstring("is empty, expected a private key"));
  CHECK_THAT(certificate_fault("\x30\x82"),
             ContainsSubstring("is not PEM: expected a certificate"));
  for (const std::size_t kept : {certificate.size() / 2, certificate.size() - 8}) {
    CHECK_THAT(certificate_fault(certificate.substr(0, kept)),
               ContainsSubstring("is cut short: its certificate has no end"));
  }
  CHECK_THAT(certificate_fault(made().key),
             ContainsSubstring("holds a private key, expected a certificate"));
  CHECK_THAT(key_fault(certificate), ContainsSubstring("holds a certificate, expected a private"));
  CHECK_THAT(key_fault(replaced(made().key, "PRIVATE KEY", "PARAMETERS")),
             ContainsSubstring("holds something else, expected a private key"));
  CHECK_THAT(certificate_fault(certificate + certificate),
             ContainsSubstring("holds 2 certificates, expected one"));
  CHECK_THAT(key_fault(made().key + made().key), ContainsSubstring("holds 2 private keys"));
}

TEST_CASE("a block whose content is damaged is refused with OpenSSL's reason",
          "[security][pem][bad-input]") {
  std::string certificate = made().certificate;
  certificate[certificate.size() / 2] = '!';
  CHECK_THAT(certificate_fault(certificate), ContainsSubstring("is a damaged certificate ("));
  CHECK_THAT(certificate_fault("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
             ContainsSubstring("is a damaged certificate ("));
  // A key in the place of a certificate's content.
  CHECK_THAT(certificate_fault(replaced(made().key, "PRIVATE KEY", "CERTIFICATE")),
             ContainsSubstring("is a damaged certificate ("));
  std::string key = made().key;
  key[key.size() / 2] = '!';
  CHECK_THAT(key_fault(key), ContainsSubstring("is a damaged private key ("));
}

TEST_CASE("a key under a passphrase is refused without asking for it",
          "[security][pem][bad-input]") {
  CHECK_THAT(key_fault(replaced(made().key, "PRIVATE KEY", "ENCRYPTED PRIVATE KEY")),
             ContainsSubstring("is protected by a passphrase") &&
                 ContainsSubstring("openssl pkey -in 'it.pem'"));
}

TEST_CASE("OpenSSL's reason is told once, and the queue is empty then", "[security][pem]") {
  CHECK(openssl_reason() == "no reason given");
  ERR_raise(ERR_LIB_USER, ERR_R_MALLOC_FAILURE);
  try {
    require_openssl(false, "a key");
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::Internal);
    CHECK_THAT(error.message(), ContainsSubstring("could not make a key: malloc failure"));
  }
  CHECK(openssl_reason() == "no reason given");
  CHECK_NOTHROW(require_openssl(true, "a key"));
}

}  // namespace
}  // namespace stagecraft::security
