# gantry_add_plugin(name SOURCES a.cc ... [LINK lib ...] [PRECOMPILE])
#
# Builds name.so, a plugin for Gantry. The same for Gantry's own plugins and a third party's. An unresolved
# symbol fails the link. PRECOMPILE precompiles gantry/torch.h, once for all plugins of the project: worth it
# from the second source file on that includes it.
# To install it where every Gantry of that prefix finds it:
#   install(TARGETS name LIBRARY DESTINATION ${GANTRY_PLUGIN_INSTALL_DIR})
include_guard(GLOBAL)

function(gantry_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PRECOMPILE" "" "SOURCES;LINK")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "gantry_add_plugin(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT arg_SOURCES)
    message(FATAL_ERROR "gantry_add_plugin(${name}): SOURCES is missing")
  endif()

  add_library(${name} MODULE ${arg_SOURCES})
  set_property(GLOBAL APPEND PROPERTY GANTRY_PLUGIN_TARGETS ${name})
  set_target_properties(${name} PROPERTIES
    PREFIX "" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
  if(GANTRY_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${GANTRY_PLUGIN_OUTPUT_DIRECTORY})
  endif()
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE gantry::sdk ${arg_LINK})
  target_link_options(${name} PRIVATE -Wl,-z,defs -Wl,--exclude-libs,ALL)

  if(arg_PRECOMPILE)
    if(NOT TARGET gantry_torch_pch)
      file(WRITE ${PROJECT_BINARY_DIR}/gantry_torch_pch.cc "")
      add_library(gantry_torch_pch OBJECT ${PROJECT_BINARY_DIR}/gantry_torch_pch.cc)
      set_target_properties(gantry_torch_pch PROPERTIES
        CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON POSITION_INDEPENDENT_CODE ON)
      target_compile_features(gantry_torch_pch PRIVATE cxx_std_20)
      target_link_libraries(gantry_torch_pch PRIVATE gantry::sdk)
      target_precompile_headers(gantry_torch_pch PRIVATE <gantry/torch.h>)
    endif()
    target_precompile_headers(${name} REUSE_FROM gantry_torch_pch)
  endif()
endfunction()
