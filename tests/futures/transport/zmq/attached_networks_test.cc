#include "stagecraft/futures/transport/zmq/attached_networks.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

TEST_CASE("a network is found while it lives, and known to have ended after that",
          "[transport][zmq]") {
  AttachedNetworks networks;
  const NetworkId id(3);
  CHECK(networks.find(id) == nullptr);
  CHECK_FALSE(networks.has_ended(id));
  auto mailboxes = std::make_shared<const Mailboxes>(2);
  networks.attach(id, mailboxes);
  CHECK(networks.find(id) == mailboxes);
  CHECK_FALSE(networks.has_ended(id));
  CHECK(thrown_by([&] { networks.attach(id, mailboxes); }) == Errc::UsageArgument);
  CHECK_FALSE(networks.is_at(id, Rank(1), "key"));
  networks.place(id, Rank(1), "key");
  CHECK(networks.is_at(id, Rank(1), "key"));
  CHECK_FALSE(networks.is_at(id, Rank(0), "key"));
  CHECK_FALSE(networks.is_at(NetworkId(4), Rank(1), "key"));
  networks.place(id, Rank(1), "successor");
  CHECK_FALSE(networks.is_at(id, Rank(1), "key"));
  networks.detach(id);
  CHECK_FALSE(networks.is_at(id, Rank(1), "successor"));
  CHECK(networks.find(id) == nullptr);
  CHECK(networks.has_ended(id));
  CHECK_FALSE(networks.has_ended(NetworkId(4)));
}

}  // namespace
}  // namespace stagecraft
