/// Archives of torch.export: whatever the bytes are, a model or a refusal that names the file. What
/// does not begin like an archive is taken for the program's JSON alone, which bytes reach sooner.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/exported_graph.h"
#include "stagecraft/compiler/import/exported_json.h"
#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/fuzz/require.h"
#include "stagecraft/fuzz/target.h"

namespace sc = stagecraft;

namespace {

void read(std::string_view bytes) {
  if (bytes.starts_with("PK")) {
    (void)sc::read_exported_model(bytes, "fuzzed.pt2");
    return;
  }
  const sc::exported::Program program = sc::exported::read_program(bytes);
  std::vector<sc::Unsupported> unsupported;
  const std::vector<bool> dependent(program.graph.inputs.size(), true);
  const sc::exported::ExportedGraph graph(program.graph, {dependent}, unsupported);
  sc::fuzz::require(graph.written_inputs().size() == dependent.size(),
                    "every input of a bound graph is judged");
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const sc::Error& error) {
    sc::fuzz::require(error.code() == sc::Errc::UsageFile, "a file is refused as such");
  }
  return 0;
}
