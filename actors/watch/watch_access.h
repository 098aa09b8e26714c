/// watch_access decides which requests a watched run answers.
///
/// Watch asks it for every request, before it looks at its path. Pure, but for make_token().
/// WX-1: a request without the token learns nothing: neither that a run is here, nor which paths
///       there are.
/// WX-2: a page of another origin gets nothing, even with the token: the host must be this one by
///       its number or as localhost, against names that are made to point here, and an origin, if
///       there is one, must be the page's own.
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
/// Errors: UsageArgument for another form, and for an address that other hosts reach: the server
/// has no TLS.
[[nodiscard]] WatchPlace parse_watch_place(const std::string& text);

/// Returns 128 random bits in hexadecimal digits.
[[nodiscard]] std::string make_token();

/// Returns whether the request may be answered by the run at `place`, whose token is `token`.
/// Takes as long for any wrong token of the right length.
[[nodiscard]] bool may_watch(const HttpRequest& request,
                             const WatchPlace& place,
                             const std::string& token);

/// Returns "http://127.0.0.1:8080/?token=...".
[[nodiscard]] std::string watch_link(const WatchPlace& place, const std::string& token);

}  // namespace stagecraft
