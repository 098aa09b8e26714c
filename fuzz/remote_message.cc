/// A message between the driver and the actors of a rank: accepted bytes pack to bytes that read
/// back the same. The first byte is the number of tensors that come with it.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/zeros.h>

#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/base/error.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const sc::Payload received{std::string(reinterpret_cast<const char*>(data) + 1, size - 1),
                             std::vector<at::Tensor>(data[0] % 8, at::zeros({1}))};
  std::optional<sc::RemoteMessage> read;
  try {
    read = sc::unpack<sc::RemoteMessage>(received);
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::WireFormat, "bytes are refused as such");
    return 0;
  }
  const sc::Payload again = sc::pack(*read);
  sc::fuzz::require(sc::pack(sc::unpack<sc::RemoteMessage>(again)).bytes == again.bytes,
                    "a packed message reads back the same");
  sc::fuzz::require(again.tensors.size() == received.tensors.size(), "no tensor is lost");
  return 0;
}
