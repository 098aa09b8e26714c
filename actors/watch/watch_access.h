/// watch_access decides which requests a watched run answers.
///
/// Watch asks it for every request, before it looks at its path. Pure, but for make_token().
/// WX-1: a request without the token learns nothing: neither that a run is here, nor which paths
///       there are.
/// WX-2: a page of another origin gets nothing, even with the token: an origin, if there is one,
///       must be the page's own. Plain HTTP is answered to this host by its number or as localhost
///       alone, against names that are made to point here. Over TLS any name is answered, because
///       browsers themselves refuse the certificate for other names.
/// WX-3: what changes the run takes the token in a header, which no link and no form can set.
#pragma once

#include <string>

#include "stagecraft/actors/watch/http_request.h"

namespace stagecraft {

/// WatchPlace is where a run is watched. The address is in digits, as browsers write it.
struct WatchPlace {
  std::string address = "127.0.0.1";
  int port = 0;
};

/// Returns the place that "127.0.0.1:8080", "127.0.0.1", "[::1]:8080" or ":8080" names.
/// Errors: UsageArgument for another form.
[[nodiscard]] WatchPlace parse_watch_place(const std::string& text);

/// Returns whether other hosts reach the place: then it must be served over TLS.
[[nodiscard]] bool needs_tls(const WatchPlace& place);

/// Returns the address; the name of this host instead of all its addresses (0.0.0.0, ::).
[[nodiscard]] std::string host_of_link(const WatchPlace& place);

/// Returns 128 random bits in hexadecimal digits.
[[nodiscard]] std::string make_token();

/// Returns whether the request may be answered by the run at `place`, whose token is `token`.
/// Takes as long for any wrong token of the right length.
[[nodiscard]] bool may_watch(const HttpRequest& request,
                             const WatchPlace& place,
                             const std::string& token);

/// Returns "http://127.0.0.1:8080/?token=..."; for a place that needs TLS
/// "https://192.168.0.7:8080/?token=...#sha256=AB:CD:...". Browsers do not send what follows #.
/// `fingerprint`: of the certificate; empty without TLS.
[[nodiscard]] std::string watch_link(const WatchPlace& place,
                                     const std::string& token,
                                     const std::string& fingerprint);

}  // namespace stagecraft
