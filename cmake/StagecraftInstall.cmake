# Decides what `cmake --install` puts where, and what find_package(stagecraft) finds there.
#
# There are two export sets, because stagecraft::scheduler can be used without LibTorch and CAF.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/stagecraft")

get_property(layers GLOBAL PROPERTY STAGECRAFT_LAYERS)
foreach(layer IN LISTS layers)
  if(layer MATCHES "^stagecraft_(base|scheduler)$")
    list(APPEND scheduler_targets ${layer})
  else()
    list(APPEND runtime_targets ${layer})
  endif()
endforeach()
install(TARGETS ${scheduler_targets} EXPORT stagecraft-scheduler-targets)
install(TARGETS ${runtime_targets} stagecraft_runtime EXPORT stagecraft-runtime-targets)
foreach(set IN ITEMS scheduler runtime)
  install(EXPORT stagecraft-${set}-targets NAMESPACE stagecraft:: DESTINATION ${package_dir})
endforeach()

install(DIRECTORY base scheduler futures compiler actors
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stagecraft" FILES_MATCHING PATTERN "*.h")
install(FILES stagecraft.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/stagecraft")
install(TARGETS stagecraft)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}")

# The manual pages and the completions of shells, where man and the shells look for them.
set(pages "${PROJECT_BINARY_DIR}/share")
install(DIRECTORY "${pages}/man1" DESTINATION "${CMAKE_INSTALL_MANDIR}")
install(FILES "${pages}/bash/stagecraft"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
install(FILES "${pages}/zsh/_stagecraft" DESTINATION "${CMAKE_INSTALL_DATADIR}/zsh/site-functions")
install(FILES "${pages}/fish/stagecraft.fish"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")

# Every user who may read the prefix can run the command. Some of these users may not read the
# folder of the fetched LibTorch, so the libraries of LibTorch that the runtime's program links are
# installed too, in the folders in which these libraries look for each other.
set(runtime_dir "libexec/stagecraft")
set_target_properties(stagecraft_runtime_program PROPERTIES
  INSTALL_RPATH "$ORIGIN/torch/lib" INSTALL_RPATH_USE_LINK_PATH OFF)
install(TARGETS stagecraft_runtime_program DESTINATION ${runtime_dir})
cmake_path(GET LibTorch_INCLUDE_DIR PARENT_PATH libtorch_home)
cmake_path(GET libtorch_home PARENT_PATH libtorch_site)
install(DIRECTORY "${libtorch_home}/lib/" DESTINATION "${runtime_dir}/torch/lib"
  USE_SOURCE_PERMISSIONS FILES_MATCHING REGEX "/lib(c10|torch_cpu)\\.so$" REGEX "/libgomp[^/]*\\.so\\.[0-9]+$")
install(DIRECTORY "${libtorch_site}/nvidia" DESTINATION ${runtime_dir}
  OPTIONAL FILES_MATCHING REGEX "/lib(cupti|cudart)\\.so\\.[0-9]+$")

configure_package_config_file(cmake/stagecraftConfig.cmake.in
  "${PROJECT_BINARY_DIR}/stagecraftConfig.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/stagecraftConfig.cmake"
  "${PROJECT_BINARY_DIR}/stagecraftConfigVersion.cmake"
  cmake/FindLibTorch.cmake cmake/FindCAF.cmake cmake/FindZeroMQ.cmake cmake/FindHttplib.cmake
  DESTINATION ${package_dir})
