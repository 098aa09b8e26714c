#include "stagecraft/tools/watch/watch_client.h"

#include <charconv>
#include <chrono>
#include <memory>
#include <regex>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>
#include <openssl/ssl.h>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

/// The longest that a question is asked again, and that one waits for its answer.
constexpr std::chrono::seconds kAskPatience{3};
constexpr std::chrono::milliseconds kAskAgain{200};

/// CertificatePin accepts the one certificate that has a fingerprint, whoever has signed it. It
/// refuses others within the handshake (keeps WCL-1).
class CertificatePin {
 public:
  explicit CertificatePin(std::string fingerprint) : fingerprint_(std::move(fingerprint)) {}

  /// Judges the certificates of this client, which this object outlives.
  void apply(httplib::SSLClient& client) {
    client.enable_server_certificate_verification(false);  // by authorities and names
    SSL_CTX_set_verify(client.ssl_context(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_cert_verify_callback(
        client.ssl_context(),
        [](X509_STORE_CTX* shown, void* pin) {
          return static_cast<CertificatePin*>(pin)->judge(X509_STORE_CTX_get0_cert(shown)) ? 1 : 0;
        },
        this);
  }

  [[nodiscard]] bool has_refused() const { return has_refused_; }

 private:
  [[nodiscard]] bool judge(const X509* certificate) noexcept {
    has_refused_ = certificate == nullptr || security::fingerprint_of(*certificate) != fingerprint_;
    return !has_refused_;
  }

  const std::string fingerprint_;
  bool has_refused_ = false;
};

[[noreturn]] void refuse_other_certificate() {
  throw Error(Errc::UsageArgument,
              "what answers at this link has another certificate than the link says, so it is "
              "another run, or somebody between you and the run; nothing was sent to it: use the "
              "link that `stagecraft train --serve` has printed");
}

[[noreturn]] void refuse_unknown_certificate() {
  throw Error(Errc::UsageArgument,
              "no authority that this host knows vouches for the certificate at this link, and the "
              "link does not say which one is right: use the whole link that `stagecraft train "
              "--serve` has printed, with #sha256=... at its end");
}

[[noreturn]] void refuse_without_answer(httplib::Error error) {
  throw Error(Errc::UsageFile,
              error == httplib::Error::Connection
                  ? std::string("nobody answers at this link: the run has ended, or it runs on "
                                "another host; there, or through ssh -L, the link works")
                  : fmt::format("the run at this link does not answer within {} s: it is stopped, "
                                "or as many as it answers at once ask it; try again",
                                kAskPatience.count()));
}

nlohmann::ordered_json read_answer(const httplib::Result& result) {
  if (result->status == 403) {
    throw Error(Errc::UsageArgument,
                "the run refuses this link: its token is that of another run; use the link that "
                "`stagecraft train --serve` has printed");
  }
  auto object = nlohmann::ordered_json::parse(result->body, nullptr, false);
  if (!object.is_object() || object.value("stagecraft", "") != "watch") {
    throw Error(Errc::UsageFile,
                fmt::format("expected the answer of a run at this link, found status {} of another "
                            "program",
                            result->status));
  }
  return object;
}

}  // namespace

WatchClient::WatchClient(const std::string& link) {
  static const std::regex form(
      R"((http|https)://((\[?)([-\w.:]+?)\]?:(\d{1,5}))/\?token=([0-9a-f]+))"
      R"((?:#sha256=((?:[0-9A-F]{2}:){31}[0-9A-F]{2}))?)");
  std::smatch parts;
  if (!std::regex_match(link, parts, form) || (parts[1] == "http" && parts[7].matched)) {
    throw Error(Errc::UsageArgument,
                fmt::format("expected the link of a run, http://ADDRESS:PORT/?token=... or "
                            "https://HOST:PORT/?token=...#sha256=..., found '{}'",
                            link));
  }
  has_tls_ = parts[1] == "https";
  place_ = parts[2];
  host_ = parts[4];
  const std::string digits = parts[5];
  std::from_chars(digits.data(), digits.data() + digits.size(), port_);
  token_ = parts[6];
  fingerprint_ = parts[7];
}

template <class Ask>
nlohmann::ordered_json WatchClient::ask(Ask&& ask_through) const {
  using Time = std::chrono::steady_clock;
  const httplib::Headers headers{{"Host", place_}, {"Authorization", "Bearer " + token_}};
  CertificatePin pin(fingerprint_);
  for (const Time::time_point begun = Time::now();; std::this_thread::sleep_for(kAskAgain)) {
    std::unique_ptr<httplib::ClientImpl> client;
    if (has_tls_) {
      auto secured = std::make_unique<httplib::SSLClient>(host_, port_);
      if (!fingerprint_.empty()) {
        pin.apply(*secured);
      }
      client = std::move(secured);
    } else {
      client = std::make_unique<httplib::ClientImpl>(host_, port_);
    }
    client->set_read_timeout(kAskPatience);
    client->set_connection_timeout(kAskPatience);
    const httplib::Result result = ask_through(*client, headers);
    if (result) {
      return read_answer(result);
    }
    if (pin.has_refused()) {
      refuse_other_certificate();
    }
    if (result.error() == httplib::Error::SSLServerVerification) {
      refuse_unknown_certificate();
    }
    if (Time::now() - begun >= kAskPatience) {
      refuse_without_answer(result.error());
    }
  }
}

nlohmann::ordered_json WatchClient::state() const {
  return ask([](httplib::ClientImpl& client, const httplib::Headers& headers) {
    return client.Get("/state", headers);
  });
}

std::string WatchClient::wish(const std::string& name) const {
  const nlohmann::ordered_json answer =
      ask([&](httplib::ClientImpl& client, const httplib::Headers& headers) {
        return client.Post("/" + name, headers, "", "text/plain");
      });
  return answer.value("why", "");
}

}  // namespace stagecraft::tools
